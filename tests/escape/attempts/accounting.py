"""acct(2) would make the host write a record for each process."""

from escape import attempt, call


@attempt
def accounting():
    call("acct", b"/workspace/acct")
    return "switched accounting on"

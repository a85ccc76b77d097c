"""swapon(2) of a file that does not exist."""

from escape import attempt, call


@attempt
def swap_on():
    call("swapon", b"/workspace/none", 0)
    return "has swap"

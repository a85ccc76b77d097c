"""userfaultfd(2): page faults handled by the program."""

from escape import attempt, call


@attempt
def user_faults():
    call("userfaultfd", 1)
    return "handles faults"

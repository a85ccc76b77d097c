"""swapoff(2) of a file that does not exist."""

from escape import attempt, call


@attempt
def swap_off():
    call("swapoff", b"/workspace/none")
    return "took swap away"

"""Swap off, of a file that is not there."""

from escape import attempt, call


@attempt
def swap_off():
    call("swapoff", b"/workspace/none")
    return "took swap away"

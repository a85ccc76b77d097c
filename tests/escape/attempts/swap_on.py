"""Swap on a file that is not there."""

from escape import attempt, call


@attempt
def swap_on():
    call("swapon", b"/workspace/none", 0)
    return "has swap"

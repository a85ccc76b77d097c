"""Switches the system call filter off."""

from escape import attempt, call


@attempt
def switch_filter_off():
    call("prctl", 22, 0, 0, 0, 0)
    return "has no filter"

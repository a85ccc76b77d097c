"""Placement of memory."""

from escape import attempt, call


@attempt
def memory_placement():
    call("mbind", 0, 0, 0, None, 0, 0)
    return "placed memory"

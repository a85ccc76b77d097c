"""Gives pid 1 the lowest priority for reading and writing."""

from escape import attempt, call


@attempt
def init_io_priority():
    call("ioprio_set", 1, 1, 3 << 13)
    return "made init's input and output idle"

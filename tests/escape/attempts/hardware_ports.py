"""Ports of the machine."""

from escape import attempt, call


@attempt
def hardware_ports():
    call("ioperm", 0x80, 1, 1)
    return "has a port"

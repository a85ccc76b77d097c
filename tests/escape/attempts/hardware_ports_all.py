"""All ports of the machine."""

from escape import attempt, call


@attempt
def hardware_ports_all():
    call("iopl", 3)
    return "has all ports"

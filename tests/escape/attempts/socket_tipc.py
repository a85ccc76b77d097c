"""TIPC. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_tipc():
    call("socket", 30, 2, 0)
    return "has a socket"

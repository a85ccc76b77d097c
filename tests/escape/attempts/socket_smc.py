"""Shared memory sockets. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_smc():
    call("socket", 43, 1, 0)
    return "has a socket"

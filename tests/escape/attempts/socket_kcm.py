"""Kernel connection multiplexor. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_kcm():
    call("socket", 41, 2, 0)
    return "has a socket"

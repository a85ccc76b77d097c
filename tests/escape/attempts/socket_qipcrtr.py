"""Qualcomm routers. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_qipcrtr():
    call("socket", 42, 2, 0)
    return "has a socket"

"""Express data path. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_xdp():
    call("socket", 44, 3, 0)
    return "has a socket"

"""Vehicle bus. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_can():
    call("socket", 29, 3, 0)
    return "has a socket"

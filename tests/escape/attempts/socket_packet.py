"""Raw frames. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_packet():
    call("socket", 17, 3, 0)
    return "has a socket"

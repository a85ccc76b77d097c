"""IPsec keys. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_key():
    call("socket", 15, 3, 0)
    return "has a socket"

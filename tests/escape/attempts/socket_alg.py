"""The kernel's ciphers. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_alg():
    call("socket", 38, 5, 0)
    return "has a socket"

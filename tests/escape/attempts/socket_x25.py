"""X.25. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_x25():
    call("socket", 9, 5, 0)
    return "has a socket"

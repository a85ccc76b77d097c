"""Near field. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_nfc():
    call("socket", 39, 3, 0)
    return "has a socket"

"""Bluetooth. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_bluetooth():
    call("socket", 31, 3, 0)
    return "has a socket"

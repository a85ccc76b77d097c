"""802.15.4. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_ieee802154():
    call("socket", 36, 3, 0)
    return "has a socket"

"""RxRPC. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_rxrpc():
    call("socket", 33, 2, 0)
    return "has a socket"

"""The hypervisor. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_vsock():
    call("socket", 40, 1, 0)
    return "has a socket"

"""RDS. A family that sandboxes do not have, however the kernel is built."""

from escape import attempt, call


@attempt
def socket_rds():
    call("socket", 21, 5, 0)
    return "has a socket"

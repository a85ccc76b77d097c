"""Netlink protocol 4; only routes (0) may be asked."""

from escape import attempt, call


@attempt
def netlink_sock_diag():
    call("socket", 16, 3, 4)
    return "has a netlink socket"

"""Netlink protocol 9; only routes (0) may be asked."""

from escape import attempt, call


@attempt
def netlink_audit():
    call("socket", 16, 3, 9)
    return "has a netlink socket"

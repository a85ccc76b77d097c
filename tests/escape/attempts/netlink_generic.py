"""Netlink protocol 16; only routes (0) may be asked."""

from escape import attempt, call


@attempt
def netlink_generic():
    call("socket", 16, 3, 16)
    return "has a netlink socket"

"""Netlink protocol 6; only routes (0) may be asked."""

from escape import attempt, call


@attempt
def netlink_xfrm():
    call("socket", 16, 3, 6)
    return "has a netlink socket"

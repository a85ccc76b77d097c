"""Netlink protocol 15; only routes (0) may be asked."""

from escape import attempt, call


@attempt
def netlink_uevent():
    call("socket", 16, 3, 15)
    return "has a netlink socket"

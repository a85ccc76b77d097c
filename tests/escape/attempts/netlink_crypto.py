"""Netlink protocol 21; only routes (0) may be asked."""

from escape import attempt, call


@attempt
def netlink_crypto():
    call("socket", 16, 3, 21)
    return "has a netlink socket"

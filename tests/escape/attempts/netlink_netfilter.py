"""Netlink protocol 12; only routes (0) may be asked."""

from escape import attempt, call


@attempt
def netlink_netfilter():
    call("socket", 16, 3, 12)
    return "has a netlink socket"

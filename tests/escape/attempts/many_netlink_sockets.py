"""Netlink sockets, whose buffers are charged to no memory cgroup."""

from escape import attempt, call


@attempt
def many_netlink_sockets():
    for _ in range(200):
        call("socket", 16, 3, 0)
    return "has 200 netlink sockets"

"""A rule of routing, for a later sandbox to follow."""

import socket
import struct

from escape import attempt


def ask(kind, body):
    file = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    file.send(struct.pack("IHHII", 16 + len(body), kind, 0x605, 1, 0) + body)
    code = -struct.unpack_from("i", file.recv(8192), 16)[0]
    if code:
        raise OSError(code, "refused")


@attempt
def netlink_add_rule():
    ask(32, struct.pack("8BI", 2, 0, 0, 0, 100, 0, 0, 1, 0))
    return "added a rule"

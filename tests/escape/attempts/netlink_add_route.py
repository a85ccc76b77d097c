"""A route, for a later sandbox to follow."""

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
def netlink_add_route():
    ask(24, struct.pack("8BI", 2, 8, 0, 0, 254, 4, 253, 1, 0) + struct.pack("HH4B", 8, 1, 10, 0, 0, 0) + struct.pack("HHI", 8, 4, 1))
    return "added a route"

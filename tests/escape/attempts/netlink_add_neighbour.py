"""An entry of the neighbour table, for a later sandbox to find."""

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
def netlink_add_neighbour():
    ask(28, struct.pack("BxxxiHBB", 2, 1, 128, 0, 0) + struct.pack("HH4B", 8, 1, 10, 9, 8, 6))
    return "added a neighbour"

"""The loopback interface of a network namespace that a later sandbox may get is raised."""

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
def netlink_raise_loopback():
    ask(16, struct.pack("BxHiII", 0, 0, 1, 1, 1))
    return "raised the loopback interface"

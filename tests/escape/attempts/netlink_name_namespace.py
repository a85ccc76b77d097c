"""An id for a network namespace, which the next sandbox in this one could read."""

import os
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
def netlink_name_namespace():
    ask(88, struct.pack("B3x", 0) + struct.pack("HHi", 8, 1, 77) + struct.pack("HHI", 8, 2, os.getpid()))
    return "named a namespace"

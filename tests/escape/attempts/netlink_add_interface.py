"""A new network interface, by the one netlink protocol that is open."""

import socket
import struct

from escape import attempt


@attempt
def netlink_add_interface():
    file = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    kind = struct.pack("HH", 10, 1) + b"dummy\0\0\0"[:6] + b"\0\0"
    info = struct.pack("HH", 4 + len(kind), 18) + kind
    body = struct.pack("BxHiII", 0, 0, 0, 0, 0) + info
    file.send(struct.pack("IHHII", 16 + len(body), 16, 0x605, 1, 0) + body)
    answer = file.recv(4096)
    code = -struct.unpack_from("i", answer, 16)[0]
    if code:
        raise OSError(code, "refused")
    return "made an interface"

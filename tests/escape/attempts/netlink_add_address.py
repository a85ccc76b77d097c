"""An address on the loopback interface, for a later sandbox to find."""

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
def netlink_add_address():
    ask(20, struct.pack("BBBBI", 2, 8, 0, 0, 1) + struct.pack("HH4B", 8, 2, 10, 9, 8, 7))
    return "added an address"

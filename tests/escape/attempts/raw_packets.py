"""A raw socket."""

import socket

from escape import attempt


@attempt
def raw_packets():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
    return "has a raw socket"

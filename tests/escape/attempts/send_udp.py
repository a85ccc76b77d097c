"""A datagram to a name server."""

import socket

from escape import attempt


@attempt
def send_udp():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"escape", ("192.0.2.53", 53))
    return "sent a datagram"

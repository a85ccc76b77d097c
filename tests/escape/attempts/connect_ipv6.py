"""Connects to an address of the internet by IPv6."""

import socket

from escape import attempt


@attempt
def connect_ipv6():
    socket.socket(socket.AF_INET6, socket.SOCK_STREAM).connect(("2001:db8::1", 443))
    return "connected"

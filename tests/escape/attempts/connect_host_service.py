"""A service of the host on its loopback."""

import socket

from escape import HOST, attempt


@attempt
def connect_host_service():
    socket.create_connection(("127.0.0.1", HOST["port"]), 2)
    return "connected to a service of the host"

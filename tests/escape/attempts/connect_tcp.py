"""An address of the internet."""

import socket

from escape import attempt


@attempt
def connect_tcp():
    socket.create_connection(("192.0.2.1", 443), 2)
    return "connected"

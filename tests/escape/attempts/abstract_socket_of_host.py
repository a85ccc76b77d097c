"""An abstract socket of the host."""

import socket

from escape import HOST, attempt


@attempt
def abstract_socket_of_host():
    socket.socket(socket.AF_UNIX).connect("\0" + HOST["abstract"])
    return "connected to a socket of the host"

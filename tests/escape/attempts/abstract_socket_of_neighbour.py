"""An abstract socket of another sandbox."""

import socket

from escape import attempt


@attempt
def abstract_socket_of_neighbour():
    socket.socket(socket.AF_UNIX).connect("\0escape-neighbour")
    return "connected to a socket of a neighbour"

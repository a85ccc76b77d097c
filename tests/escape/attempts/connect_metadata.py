"""The cloud's metadata service, which hands out credentials."""

import socket

from escape import attempt


@attempt
def connect_metadata():
    socket.create_connection(("169.254.169.254", 80), 2)
    return "connected to the metadata service"

"""Descriptors in flight in sockets are counted for each user id; the neighbour has sent all that it may."""

import errno
import os
import socket

from escape import attempt, stopped


@attempt
def descriptors_of_neighbour():
    left, _ = socket.socketpair()
    try:
        socket.send_fds(left, [b"x"], [0])
    except OSError as error:
        if error.errno == errno.ETOOMANYREFS:
            return "the neighbour's descriptors count for us"
        raise
    return stopped("bounded")

"""A process descriptor of the process that made a socket (SO_PEERPIDFD)."""

import socket

from escape import attempt


@attempt
def peer_process_descriptor():
    left, _ = socket.socketpair()
    left.getsockopt(socket.SOL_SOCKET, 77)
    return "has a descriptor of the peer's process"

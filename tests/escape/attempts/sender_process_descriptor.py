"""A process descriptor of the process that sends a message (SO_PASSPIDFD)."""

import socket

from escape import attempt


@attempt
def sender_process_descriptor():
    left, _ = socket.socketpair()
    left.setsockopt(socket.SOL_SOCKET, 76, 1)
    return "gets a descriptor of each sender's process"

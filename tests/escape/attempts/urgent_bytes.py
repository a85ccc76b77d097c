"""Urgent bytes on a local socket, both ways to send and to receive them."""

import socket

from escape import attempt


@attempt
def urgent_bytes():
    left, right = socket.socketpair()
    for ask in (lambda: left.sendmsg([b"1"], [], socket.MSG_OOB), lambda: right.recv(1, socket.MSG_OOB),
                lambda: right.recvmsg(1, 0, socket.MSG_OOB)):
        try:
            ask()
        except OSError as error:
            if error.errno == 95:
                continue
            raise
        return "sent or received urgent bytes"
    left.send(b"1", socket.MSG_OOB)
    return "sent an urgent byte"

"""Upper protocols of TCP."""

import socket

from escape import attempt, call


@attempt
def kernel_tls():
    left, _ = socket.socketpair()
    call("setsockopt", left.fileno(), 6, 31, b"tls", 3)
    return "has TLS in the kernel"

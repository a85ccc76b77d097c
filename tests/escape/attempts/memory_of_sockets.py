"""Full sockets."""

import socket

from escape import attempt, stopped

LIMITS = {"memory_bytes": 64 << 20, "open_files": 4096}
LIMIT = "memory"


@attempt
def memory_of_sockets():
    total = 0
    pairs = []
    try:
        for _ in range(1500):
            pair = socket.socketpair()
            pairs.append(pair)
            pair[0].setblocking(False)
            total += pair[0].send(b"x" * 131072)
    except OSError:
        pass
    return stopped("bounded") if total < 80 << 20 else f"{total} bytes in sockets"

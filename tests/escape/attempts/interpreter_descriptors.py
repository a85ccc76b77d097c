"""What a forked interpreter itself holds: its streams, and one socket, which leads to its own init and to nobody else.

Run in the interpreter, not in a child of it: what it forks has that socket no more."""

import os
import socket
import struct

from escape import attempt, stopped


def wrong_about(number):
    try:
        held = socket.socket(fileno=os.dup(number))
    except OSError:
        return "is no socket"
    pid, uid, _ = struct.unpack("3i", held.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if (held.type, pid, uid) != (socket.SOCK_SEQPACKET, 1, os.getuid()):
        return f"is a socket of type {held.type}, made by process {pid} of user {uid}"
    return None


@attempt
def interpreter_descriptors():
    numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    held = [number for number in numbers if number > 2 and os.path.lexists(f"/proc/self/fd/{number}")]
    for number in held:
        wrong = wrong_about(number)
        if wrong:
            return f"{number}: {os.readlink(f'/proc/self/fd/{number}')} {wrong}"
    if len(held) > 1:
        return f"holds {held}"
    child = os.fork()
    if child == 0:
        os._exit(int(any(os.path.lexists(f"/proc/self/fd/{number}") for number in held)))
    if os.waitpid(child, 0)[1]:
        return "a child holds the socket as well"
    return stopped("bounded")

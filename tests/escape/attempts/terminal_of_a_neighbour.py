"""Terminals of the host or of a neighbour, by number."""

import os
import pty

from escape import attempt


@attempt
def terminal_of_a_neighbour():
    ours, theirs = pty.openpty()
    own = os.ttyname(theirs)
    others = [name for name in os.listdir("/dev/pts") if name != "ptmx" and f"/dev/pts/{name}" != own]
    if others or own != "/dev/pts/0":
        return f"/dev/pts has {others}, ours is {own}"
    try:
        os.open("/dev/pts/1", os.O_RDWR)
    finally:
        os.close(ours)
        os.close(theirs)
    return "opened a terminal that is not ours"

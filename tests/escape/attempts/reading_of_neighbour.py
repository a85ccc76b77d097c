"""inotify on a file of the template that another sandbox opens all the time."""

import ctypes
import os
import time

from escape import attempt, libc, stopped


@attempt
def reading_of_neighbour():
    file = libc.inotify_init1(os.O_NONBLOCK)
    if libc.inotify_add_watch(file, b"/etc/passwd", 0x20) < 0:
        raise OSError(ctypes.get_errno(), "inotify")
    time.sleep(0.3)
    try:
        os.read(file, 4096)
    except BlockingIOError:
        return stopped("bounded")
    return "sees what the neighbour opens"

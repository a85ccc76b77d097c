"""inotify instances without end."""

import ctypes

from escape import attempt, libc


@attempt
def many_watchers():
    for _ in range(5000):
        if libc.inotify_init1(0) < 0:
            raise OSError(ctypes.get_errno(), "inotify")
    return "has 5000 watchers"

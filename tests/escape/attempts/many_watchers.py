"""inotify instances: more than a sandbox may have, fewer than the host has."""

import ctypes

from escape import attempt, libc


@attempt
def many_watchers():
    for _ in range(40):
        if libc.inotify_init1(0) < 0:
            raise OSError(ctypes.get_errno(), "inotify")
    return "has 40 watchers"

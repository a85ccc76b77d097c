"""Flushes a file system of the host over and over."""

import os
import time

from escape import attempt, call, stopped


@attempt
def sync_storm():
    file = os.open("/usr/bin/env", os.O_RDONLY)
    start = time.monotonic()
    for _ in range(2000):
        call("syncfs", file)
    spent = time.monotonic() - start
    file = os.open("/proc/self/status", os.O_RDONLY)
    try:
        call("syncfs", -1)
    except OSError:
        return f"synced the disk 2000 times in {spent:.3f} s"
    return stopped("skipped")

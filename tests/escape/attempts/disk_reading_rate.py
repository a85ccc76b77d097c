"""Reads of the template past the page cache, with 1 MiB a second granted."""

import ctypes
import glob
import mmap
import os
import time

from escape import attempt, stopped

LIMITS = {"disk_read_rate_bytes": 1 << 20, "wall_ms": 20000}


@attempt
def disk_reading_rate():
    path, size = "/usr/bin/env", 0
    for folder in ["/usr/bin", *glob.glob("/usr/lib/*-linux-gnu")]:
        for name in os.listdir(folder):
            place = f"{folder}/{name}"
            if os.path.isfile(place) and size < os.path.getsize(place):
                path, size = place, os.path.getsize(place)
    buffer = mmap.mmap(-1, 1 << 20)
    total, start = 0, time.monotonic()
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    while total < 3 << 20 and time.monotonic() - start < 8:
        done = os.preadv(file, [buffer], total % max(1 << 20, size - (1 << 20)) // 4096 * 4096)
        total += done
    rate = total / (time.monotonic() - start)
    return stopped("bounded") if rate < 2 << 20 else f"read {rate / (1 << 20):.0f} MiB a second"

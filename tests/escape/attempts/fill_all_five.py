"""Five files in the five places: their sum is bounded, not each."""

import os

from escape import attempt, stopped

LIMITS = {"disk_bytes": 8 << 20, "wall_ms": 20000}


@attempt
def fill_all_five():
    total = 0
    for place in ("/workspace", "/tmp", "/home/user", "/run", "/dev/shm"):
        with open(place + "/part", "wb", buffering=0) as file:
            try:
                for _ in range(16):
                    total += file.write(b"\0" * (1 << 20))
            except OSError:
                pass
    return stopped("bounded") if total <= 9 << 20 else f"wrote {total} bytes"

"""Full pipes."""

import os
import fcntl

from escape import attempt, stopped

LIMITS = {"memory_bytes": 64 << 20, "open_files": 4096}
LIMIT = "memory"


@attempt
def memory_of_pipes():
    total = 0
    try:
        for _ in range(1500):
            _, writer = os.pipe()
            os.set_blocking(writer, False)
            total += os.write(writer, b"x" * 65536)
    except OSError:
        pass
    return stopped("bounded") if total < 80 << 20 else f"{total} bytes in pipes"

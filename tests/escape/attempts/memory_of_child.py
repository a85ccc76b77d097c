"""Four processes with a third each."""

import os
import time

from escape import attempt, stopped

LIMITS = {"memory_bytes": 64 << 20}
LIMIT = "memory"


@attempt
def memory_of_child():
    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            block = b"x" * (24 << 20)
            time.sleep(1)
            os._exit(len(block) & 1)
        children.append(pid)
    good = [os.waitpid(pid, 0)[1] for pid in children]
    return "96 MiB in four processes" if not any(good) else stopped("killed")

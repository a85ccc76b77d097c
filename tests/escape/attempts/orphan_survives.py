"""A process that leaves its session and its parent, and would live on."""

import os
import time

from escape import attempt, stopped

LIMITS = {"wall_ms": 5000}


@attempt
def orphan_survives():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(3, 64):
                try:
                    os.close(number)
                except OSError:
                    pass
            time.sleep(600)
        os._exit(0)
    os.wait()
    return stopped("not-returned")

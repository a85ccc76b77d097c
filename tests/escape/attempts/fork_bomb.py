"""Two hundred processes where 16 were granted."""

import os
import time

from escape import attempt

LIMITS = {"processes": 16}


@attempt
def fork_bomb():
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
    return "has 200 processes"

"""Every signal to pid 1."""

import os
import time

from escape import attempt, stopped


@attempt
def init_signals():
    for number in range(1, 65):
        try:
            os.kill(1, number)
        except OSError:
            pass
    time.sleep(0.05)
    os.kill(1, 0)
    return stopped("survived")

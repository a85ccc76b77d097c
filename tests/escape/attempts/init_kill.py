"""SIGKILL to pid 1."""

import os
import signal
import time

from escape import attempt, stopped


@attempt
def init_kill():
    os.kill(1, signal.SIGKILL)
    time.sleep(0.05)
    os.kill(1, 0)
    return stopped("survived")

"""kill(-1, 0) says whether anybody else can be reached; in a child, with signal 0 only."""

import os

from escape import attempt, stopped


@attempt
def signal_everybody():
    try:
        os.kill(-1, 0)
    except OSError:
        pass
    os.kill(os.getppid(), 0)
    os.stat(f"/proc/{os.getpid()}")
    return stopped("survived")

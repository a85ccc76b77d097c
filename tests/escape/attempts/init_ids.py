"""The id map of pid 1."""

import os

from escape import attempt


@attempt
def init_ids():
    file = os.open("/proc/1/uid_map", os.O_WRONLY)
    os.write(file, b"0 0 1")
    return "wrote the id map"

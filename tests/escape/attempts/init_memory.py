"""The memory of pid 1."""

import os

from escape import attempt


@attempt
def init_memory():
    os.open("/proc/1/mem", os.O_RDWR)
    return "opened the memory of init"

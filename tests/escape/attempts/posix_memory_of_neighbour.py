"""POSIX shared memory of another sandbox."""

import os

from escape import attempt


@attempt
def posix_memory_of_neighbour():
    os.stat("/dev/shm/escape-neighbour")
    return "found the neighbour's memory"

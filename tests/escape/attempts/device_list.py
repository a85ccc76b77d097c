"""What /dev holds."""

import os

from escape import attempt, stopped


@attempt
def device_list():
    known = {"null", "zero", "full", "random", "urandom", "fd", "stdin", "stdout", "stderr", "shm", "pts",
             "ptmx", "tty", "core", "mqueue"}
    more = set(os.listdir("/dev")) - known
    return f"/dev has {more}" if more else stopped("bounded")

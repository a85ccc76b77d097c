"""Overwrites the program of pid 1."""

import os

from escape import attempt


@attempt
def init_program():
    os.open("/proc/1/exe", os.O_RDONLY)
    return "opened the program of init"

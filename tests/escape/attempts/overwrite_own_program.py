"""Writes into the running program through /proc/self/exe."""

import os

from escape import attempt


@attempt
def overwrite_own_program():
    os.open("/proc/self/exe", os.O_WRONLY)
    return "opened the interpreter for writing"

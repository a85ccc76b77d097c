"""The same by the magic link of the running program."""

import os

from escape import attempt


@attempt
def overwrite_own_program():
    os.open("/proc/self/exe", os.O_WRONLY)
    return "opened the interpreter for writing"

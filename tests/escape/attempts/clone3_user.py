"""A child in a new user namespace by clone3, whose flags a filter cannot see."""

import ctypes
import os

from escape import attempt, call


@attempt
def clone3_user():
    arguments = (ctypes.c_uint64 * 8)(0x10000000, 0, 0, 0, 17, 0, 0, 0)
    pid = call("clone3", arguments, 64)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "made a child in a new user namespace"

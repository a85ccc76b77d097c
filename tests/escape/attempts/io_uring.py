"""io_uring, whose operations a system call filter does not see."""

import ctypes

from escape import attempt, call


@attempt
def io_uring():
    call("io_uring_setup", 4, (ctypes.c_uint32 * 64)())
    return "has a ring"

"""More locked memory than granted."""

import ctypes

from escape import attempt, call


@attempt
def raise_locked_memory():
    call("prlimit64", 0, 8, (ctypes.c_uint64 * 2)(1 << 40, 1 << 40), None)
    return "may lock memory"

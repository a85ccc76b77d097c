"""Raises the limit of core dumps."""

import ctypes

from escape import attempt, call


@attempt
def raise_core_size():
    call("prlimit64", 0, 4, (ctypes.c_uint64 * 2)(1 << 30, 1 << 30), None)
    return "may dump core"

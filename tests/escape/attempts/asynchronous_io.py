"""Contexts for asynchronous reading."""

import ctypes

from escape import attempt, call


@attempt
def asynchronous_io():
    call("io_setup", 8, ctypes.c_ulong(0))
    return "has a context"

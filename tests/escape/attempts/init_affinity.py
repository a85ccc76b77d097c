"""Pins pid 1 to one processor, to starve it there."""

import ctypes

from escape import attempt, call


@attempt
def init_affinity():
    call("sched_setaffinity", 1, 8, ctypes.c_ulong(1))
    return "pinned init"

"""The time of the host, set to what it is."""

import ctypes
import time

from escape import attempt, call


@attempt
def clock_change():
    now = time.time_ns()
    call("clock_settime", 0, (ctypes.c_long * 2)(now // 10**9, now % 10**9))
    return "set the clock"

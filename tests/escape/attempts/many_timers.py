"""Timers without end."""

import ctypes

from escape import attempt, call


@attempt
def many_timers():
    timer = ctypes.c_int()
    for _ in range(20000):
        call("timer_create", 0, None, timer)
    return "has 20000 timers"

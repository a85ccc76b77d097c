"""Gives pid 1 the idle scheduling class."""

import ctypes

from escape import attempt, call


@attempt
def init_idle_scheduling():
    call("sched_setscheduler", 1, 5, ctypes.c_int(0))
    return "made init idle"

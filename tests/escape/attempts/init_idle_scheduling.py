"""pid 1 runs when nobody else wants to."""

import ctypes

from escape import attempt, call


@attempt
def init_idle_scheduling():
    call("sched_setscheduler", 1, 5, ctypes.c_int(0))
    return "made init idle"

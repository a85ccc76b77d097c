"""Real-time scheduling priority."""

import os

from escape import attempt


@attempt
def real_time_priority():
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    return "has real-time priority"

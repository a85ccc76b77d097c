"""Addresses and names of all timers of the host."""

import os

from escape import attempt


@attempt
def proc_timer_list():
    os.stat("/proc/timer_list")
    return "timer_list is there"

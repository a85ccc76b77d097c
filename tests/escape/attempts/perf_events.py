"""Counters of the processor."""

import ctypes

from escape import attempt, call


@attempt
def perf_events():
    attributes = (ctypes.c_uint32 * 32)(1, 128)
    call("perf_event_open", attributes, 0, -1, -1, 0)
    return "counts"

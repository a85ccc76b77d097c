"""Queued signals without end, to a child of our own that blocks them."""

import ctypes
import os
import signal

from escape import attempt, call, in_child, stopped


def flood():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
    info = (ctypes.c_int * 32)(signal.SIGRTMIN, 0, -1)
    for _ in range(20000):
        try:
            call("rt_sigqueueinfo", os.getpid(), int(signal.SIGRTMIN), info)
        except OSError as error:
            os._exit(error.errno)

@attempt
def many_signals():
    code = os.waitstatus_to_exitcode(in_child(flood))
    if code:
        raise OSError(code, "stopped")
    return "queued 20000 signals"

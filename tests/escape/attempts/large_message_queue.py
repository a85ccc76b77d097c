"""A POSIX queue of megabytes."""

import ctypes

from escape import attempt, call


@attempt
def large_message_queue():
    attributes = (ctypes.c_long * 8)(0, 10, 8192)
    for number in range(64):
        call("mq_open", b"escape-%d" % number, 0o102, 0o600, attributes)
    return "has 64 queues"

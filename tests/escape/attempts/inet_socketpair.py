"""A pair of the TIPC family."""

import ctypes

from escape import attempt, call


@attempt
def inet_socketpair():
    call(53, 30, 1, 0, (ctypes.c_int * 2)())
    return "has a pair"

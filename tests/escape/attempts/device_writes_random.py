"""Claims entropy for the host's random numbers."""

import ctypes
import os

from escape import attempt, call


@attempt
def device_writes_random():
    file = os.open("/dev/urandom", os.O_WRONLY)
    call("ioctl", file, 0x40085203, ctypes.c_uint64(0))
    return "changed the entropy count"

"""Another line discipline."""

import ctypes

from escape import attempt, call


@attempt
def line_discipline():
    call("ioctl", 0, 0x5423, ctypes.c_int(13))
    return "set a line discipline"

"""Takes CAP_SYS_ADMIN."""

import ctypes

from escape import attempt, call


@attempt
def raise_capabilities():
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)(1 << 21, 1 << 21, 0, 0, 0, 0)
    call("capset", header, data)
    return "has CAP_SYS_ADMIN"

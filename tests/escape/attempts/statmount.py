"""Looks at mounts by number."""

import ctypes

from escape import attempt, call


@attempt
def statmount():
    request = (ctypes.c_uint64 * 3)(24, 1, 1)
    buffer = ctypes.create_string_buffer(4096)
    call("statmount", request, buffer, 4096, 0)
    return "looked at a mount"

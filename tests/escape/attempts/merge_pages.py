"""Memory that is merged with equal memory of others."""

import ctypes
import mmap

from escape import attempt, call


@attempt
def merge_pages():
    page = mmap.mmap(-1, 4096)
    call(28, ctypes.addressof(ctypes.c_char.from_buffer(page)), 4096, 12)
    return "merges pages"

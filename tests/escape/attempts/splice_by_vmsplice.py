"""Own pages, given to a pipe."""

import ctypes
import os

from escape import attempt, call


@attempt
def splice_by_vmsplice():
    _, writer = os.pipe()
    page = ctypes.create_string_buffer(4096)
    vector = (ctypes.c_size_t * 2)(ctypes.addressof(page), 4096)
    call("vmsplice", writer, vector, 1, 0)
    return "gave a page to a pipe"

"""Reads memory of an own child."""

import ctypes
import os

from escape import attempt, call


@attempt
def read_child_memory():
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    call("process_vm_readv", os.getpid(), vector, 1, vector, 1, 0)
    return "read memory through the kernel"

"""Reads memory of pid 1 without a file."""

import ctypes

from escape import attempt, call


@attempt
def init_read_memory():
    buffer = ctypes.create_string_buffer(8)
    here = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    there = (ctypes.c_size_t * 2)(0x400000, 8)
    call("process_vm_readv", 1, here, 1, there, 1, 0)
    return "read memory of init"

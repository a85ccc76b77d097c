"""A map for BPF programs."""

import ctypes

from escape import attempt, call


@attempt
def bpf_program():
    call("bpf", 0, (ctypes.c_uint32 * 32)(2, 4, 4, 1), 128)
    return "has a map"

"""A second filter whose notifications come to this program instead of glovebox-init."""

import ctypes

from escape import attempt, call


@attempt
def second_listener():
    code = (ctypes.c_uint64 * 1)(0x7fff000000000006)
    program = (ctypes.c_size_t * 2)(1, ctypes.addressof(code))
    call("seccomp", 1, 8, program)
    return "has a listener"

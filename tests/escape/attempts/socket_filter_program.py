"""A BPF program on a socket."""

import ctypes
import socket

from escape import attempt, call


@attempt
def socket_filter_program():
    left, _ = socket.socketpair()
    code = (ctypes.c_uint64 * 1)(0x0000000000000006)
    program = (ctypes.c_size_t * 2)(1, ctypes.addressof(code))
    call("setsockopt", left.fileno(), 1, 26, program, 16)
    return "attached a program"

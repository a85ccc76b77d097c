"""A module of the host's kernel, by a call to any socket."""

import ctypes
import socket

from escape import attempt, call


@attempt
def bridge_module():
    file = socket.socket(socket.AF_UNIX)
    call("ioctl", file.fileno(), 0x8940, (ctypes.c_ulong * 4)(0))
    return "asked for bridges"

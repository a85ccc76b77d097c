"""Flags of a file."""

import ctypes
import os

from escape import attempt, call


@attempt
def file_flags():
    file = os.open("/workspace", os.O_RDONLY)
    call("ioctl", file, 0x40086602, ctypes.c_long(0x40))
    return "set flags of a folder"

"""Clears "read-only" on the whole tree."""

import ctypes

from escape import attempt, call


@attempt
def mount_attributes():
    attributes = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
    call("mount_setattr", -100, b"/", 0x8000, attributes, 32)
    return "made the tree writable"

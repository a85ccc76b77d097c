"""A shared mapping of a file of the template that can be written."""

import ctypes
import os

from escape import attempt, call


@attempt
def map_template_shared():
    file = os.open("/usr/bin/env", os.O_RDONLY)
    call("mmap", 0, 4096, 3, 1, file, 0)
    return "mapped a program of the template for writing"

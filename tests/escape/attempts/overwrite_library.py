"""The C library, which everything loads."""

import os
import re

from escape import attempt, libc


@attempt
def overwrite_library():
    maps = open("/proc/self/maps", encoding="utf-8").read()
    os.open(re.search(r"(/\S*libc[.-]\S*)", maps).group(1), os.O_WRONLY)
    return "opened the C library for writing"

"""What of the template is in the page cache."""

import ctypes
import os

from escape import attempt, call


@attempt
def cached_pages_of_template():
    file = os.open("/etc/passwd", os.O_RDONLY)
    span = (ctypes.c_uint64 * 2)(0, 4096)
    found = (ctypes.c_uint64 * 5)()
    call("cachestat", file, span, found, 0)
    return f"found {found[0]} pages"

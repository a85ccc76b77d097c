"""A module from a file."""

import os

from escape import attempt, call


@attempt
def kernel_module_by_file():
    call("finit_module", os.open("/etc/passwd", os.O_RDONLY), b"", 0)
    return "loaded a module"

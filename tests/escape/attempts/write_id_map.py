"""Maps the host's root into our namespace."""

import os

from escape import attempt


@attempt
def write_id_map():
    file = os.open("/proc/self/uid_map", os.O_WRONLY)
    os.write(file, b"0 0 1\n")
    return "mapped root"

"""A file of a terabyte with nothing in it."""

import os
import signal

from escape import attempt

LIMITS = {"disk_bytes": 8 << 20}


@attempt
def grow_sparse_file():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    file = os.open("/workspace/sparse", os.O_WRONLY | os.O_CREAT, 0o600)
    os.ftruncate(file, 1 << 40)
    return "made a file of a terabyte"

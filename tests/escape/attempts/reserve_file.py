"""fallocate reserves without writing."""

import os
import signal

from escape import attempt

LIMITS = {"disk_bytes": 8 << 20}


@attempt
def reserve_file():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    file = os.open("/workspace/reserved", os.O_WRONLY | os.O_CREAT, 0o600)
    os.posix_fallocate(file, 0, 64 << 20)
    return "reserved 64 MiB"

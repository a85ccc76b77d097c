"""Anonymous files."""

import os

from escape import attempt

LIMITS = {"memory_bytes": 64 << 20}
LIMIT = "memory"


@attempt
def memory_of_memfd():
    file = os.memfd_create("escape")
    for _ in range(128):
        os.write(file, b"x" * (1 << 20))
    return "128 MiB in an anonymous file"

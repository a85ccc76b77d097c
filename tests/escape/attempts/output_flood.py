"""Output without end."""

import os

from escape import attempt, stopped

LIMITS = {"output_bytes": 65536, "wall_ms": 15000}
LIMIT = "output"


@attempt
def output_flood():
    os.write(1, b"@escape output_flood stopped outcome=limited\n")
    block = b"x" * 65536
    for _ in range(20000):
        os.write(1, block)
    return "wrote 1.2 GiB"

"""Twice the memory that was granted, touched."""

from escape import attempt

LIMITS = {"memory_bytes": 64 << 20}
LIMIT = "memory"


@attempt
def memory_of_heap():
    blocks = []
    for _ in range(128):
        blocks.append(b"x" * (1 << 20))
    return f"has {len(blocks)} MiB"

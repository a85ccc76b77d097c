"""Writes until /dev/shm is full: with 8 MiB granted, not more than that."""

from escape import attempt, fill, stopped

LIMITS = {"disk_bytes": 8 << 20, "wall_ms": 20000}


@attempt
def fill_shm():
    written, code = fill("/dev/shm", 64 << 20)
    return stopped("bounded") if code and written <= 9 << 20 else f"wrote {written} bytes, errno {code}"

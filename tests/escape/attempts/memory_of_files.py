"""Files, with a disk limit above the memory limit."""

from escape import attempt, fill, stopped

LIMITS = {"memory_bytes": 64 << 20, "disk_bytes": 256 << 20}
LIMIT = "memory"


@attempt
def memory_of_files():
    written, code = fill("/workspace", 128 << 20)
    return stopped("ENOSPC") if code else f"wrote {written} bytes"

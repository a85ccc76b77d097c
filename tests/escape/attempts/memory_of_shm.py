"""System V shared memory."""

import ctypes

from escape import attempt, call, libc

LIMITS = {"memory_bytes": 64 << 20}
LIMIT = "memory"


@attempt
def memory_of_shm():
    segment = call("shmget", 0, 128 << 20, 0o1600)
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(segment, None, 0)
    ctypes.memset(address, 1, 128 << 20)
    return "128 MiB in a segment"

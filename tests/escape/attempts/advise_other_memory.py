"""process_madvise(2) on the memory of another process."""

import ctypes

from escape import attempt, call


@attempt
def advise_other_memory():
    vector = (ctypes.c_size_t * 2)(0, 4096)
    call("process_madvise", call("pidfd_open", 1, 0), vector, 1, 21, 0)
    return "gave advice for init"

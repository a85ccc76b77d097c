"""Takes the descriptors away from pid 1, so that no artifact comes back."""

import ctypes

from escape import attempt, call


@attempt
def init_limits():
    none = (ctypes.c_uint64 * 2)(3, 3)
    call("prlimit64", 1, 7, none, None)
    return "lowered a limit of init"

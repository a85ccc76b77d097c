"""The memory of the machine."""

import os

from escape import attempt


@attempt
def proc_kcore():
    os.stat("/proc/kcore")
    return "kcore is there"

"""Names a program that the host would run as root."""

import os

from escape import attempt


@attempt
def proc_sys_core_pattern():
    os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)
    return "opened core_pattern"

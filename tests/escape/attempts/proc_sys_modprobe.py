"""The same by modprobe_path."""

import os

from escape import attempt


@attempt
def proc_sys_modprobe():
    os.open("/proc/sys/kernel/modprobe", os.O_RDONLY)
    return "opened modprobe"

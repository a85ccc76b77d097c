"""Opens /proc/sys/kernel/modprobe, which names a program that the host runs as root."""

import os

from escape import attempt


@attempt
def proc_sys_modprobe():
    os.open("/proc/sys/kernel/modprobe", os.O_RDONLY)
    return "opened modprobe"

"""The id of this boot of the host."""

from escape import attempt


@attempt
def proc_sys_boot_id():
    return open("/proc/sys/kernel/random/boot_id", encoding="utf-8").read()

"""Makes a device node of /dev/mem."""

import os
import stat

from escape import attempt


@attempt
def device_memory():
    os.mknod("/tmp/mem", stat.S_IFCHR | 0o600, os.makedev(1, 1))
    return "made a memory device"

"""The kernel's messages."""

import os

from escape import attempt


@attempt
def device_kernel_log():
    os.stat("/dev/kmsg")
    return "/dev/kmsg is there"

"""/dev/kvm must not exist."""

import os

from escape import attempt


@attempt
def device_kvm():
    os.stat("/dev/kvm")
    return "/dev/kvm is there"

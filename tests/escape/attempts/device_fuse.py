"""File systems of one's own."""

import os

from escape import attempt


@attempt
def device_fuse():
    os.stat("/dev/fuse")
    return "/dev/fuse is there"

"""/dev/fuse, with which a program serves a file system, must not exist."""

import os

from escape import attempt


@attempt
def device_fuse():
    os.stat("/dev/fuse")
    return "/dev/fuse is there"

"""A file in /dev would be outside the disk limit."""

import os

from escape import attempt


@attempt
def fill_dev():
    os.close(os.open("/dev/escape", os.O_WRONLY | os.O_CREAT, 0o600))
    return "made a file in /dev"

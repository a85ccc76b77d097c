"""The terminal that glovebox was started from."""

import os

from escape import attempt


@attempt
def device_terminal():
    os.open("/dev/tty", os.O_RDWR)
    return "has a terminal"

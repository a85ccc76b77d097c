"""/dev/net/tun, with which a program makes a network interface, must not exist."""

import os

from escape import attempt


@attempt
def device_tun():
    os.stat("/dev/net/tun")
    return "/dev/net/tun is there"

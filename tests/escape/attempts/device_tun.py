"""Network interfaces of one's own."""

import os

from escape import attempt


@attempt
def device_tun():
    os.stat("/dev/net/tun")
    return "/dev/net/tun is there"

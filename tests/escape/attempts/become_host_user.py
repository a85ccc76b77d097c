"""Takes the daemon's user id on the host."""

import os

from escape import attempt


@attempt
def become_host_user():
    os.setresuid(0x70010000, 0x70010000, 0x70010000)
    return "is the daemon's user"

"""A child in a new user namespace, with bits set in the upper half of the flags."""

import os

from escape import attempt, call


@attempt
def clone_user_high_bits():
    pid = call("clone", 0xdead000000000000 | 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "made a child in a new user namespace"

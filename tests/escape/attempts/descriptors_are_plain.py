"""stdin, stdout and stderr are pipes or /dev/null of the sandbox."""

import os
import stat

from escape import attempt, stopped


@attempt
def descriptors_are_plain():
    for number in (0, 1, 2):
        found = os.fstat(number)
        null = stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(1, 3)
        if not (stat.S_ISFIFO(found.st_mode) or stat.S_ISREG(found.st_mode) or null):
            return f"{number} is {os.readlink(f'/proc/self/fd/{number}')}"
    return stopped("bounded")

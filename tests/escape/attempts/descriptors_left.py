"""Every descriptor but 0, 1 and 2."""

import os

from escape import attempt, stopped


@attempt
def descriptors_left():
    found = []
    for number in range(3, 4096):
        try:
            found.append(f"{number}: {os.readlink(f'/proc/self/fd/{number}')}")
        except OSError:
            pass
    return f"has {found}" if found else stopped("bounded")

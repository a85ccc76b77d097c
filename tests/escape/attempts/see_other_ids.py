"""How many ids of the host exist here: one."""

import os

from escape import attempt, stopped


@attempt
def see_other_ids():
    size = sum(int(line.split()[2]) for line in open("/proc/self/uid_map", encoding="utf-8"))
    if size != 1 or os.getuid() != 1000:
        return f"is {os.getuid()} of {size} ids"
    return stopped("bounded")

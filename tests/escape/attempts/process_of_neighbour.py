"""The neighbour's process in /proc."""

import os

from escape import attempt, stopped


@attempt
def process_of_neighbour():
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if b"escape-neighbour" in open(f"/proc/{name}/cmdline", "rb").read():
                    return "sees the neighbour"
            except OSError:
                pass
    return stopped("bounded")

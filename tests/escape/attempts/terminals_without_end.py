"""Takes terminals until there are no more: the kernel has a number for the whole host."""

import os

from escape import attempt


@attempt
def terminals_without_end():
    taken = []
    try:
        for _ in range(200):
            taken.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
    finally:
        for terminal in taken:
            os.close(terminal)
    return f"took {len(taken)} terminals"

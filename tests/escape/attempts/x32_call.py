"""getpid by its x32 number."""

import os

from escape import attempt, call, in_child, stopped


def knock():
    try:
        call(0x40000000 | 39)
        os._exit(7)
    except OSError:
        os._exit(8)

@attempt
def x32_call():
    status = in_child(knock)
    if os.WIFSIGNALED(status):
        return stopped("killed")
    if os.WEXITSTATUS(status) == 8:
        return "the filter let it through; this kernel has no x32"
    return "was answered"

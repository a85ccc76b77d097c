"""getpid by the 32-bit door from 32-bit code would need the old table; sysenter is the other way in."""

import os

from escape import attempt, in_child, run_code, stopped


def knock():
    run_code(b"\x55\x48\x89\xe5\xb8\x14\0\0\0\x0f\x34\x5d\xc3")
    os._exit(7)

@attempt
def far_call_to_32_bit():
    status = in_child(knock)
    return stopped("killed") if os.WIFSIGNALED(status) else "was answered"

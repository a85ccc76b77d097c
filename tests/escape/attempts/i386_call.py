"""getpid by int 0x80, the 32-bit entry of the kernel."""

import os

from escape import attempt, in_child, run_code, stopped


def knock():
    os._exit(7 if run_code(b"\xb8\x14\0\0\0\xcd\x80\xc3") else 8)

@attempt
def i386_call():
    status = in_child(knock)
    return stopped("killed") if os.WIFSIGNALED(status) else "was answered"

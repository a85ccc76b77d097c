"""An inet socket by int 0x80, the 32-bit entry of the kernel."""

import os

from escape import attempt, in_child, run_code, stopped


def knock():
    run_code(b"\xb8\x66\0\0\0\xbb\x01\0\0\0\xcd\x80\xc3")
    os._exit(7)

@attempt
def i386_socketcall():
    status = in_child(knock)
    return stopped("killed") if os.WIFSIGNALED(status) else "was answered"

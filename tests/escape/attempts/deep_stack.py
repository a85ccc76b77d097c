"""Recursion without end in a child."""

import os
import resource

from escape import attempt, in_child, run_code, stopped


def dig():
    code = b"\x48\x81\xec\x00\x10\x00\x00\x48\x89\x24\x24\xeb\xf3"  # sub rsp,4096; mov [rsp],rsp; jmp
    run_code(code)

@attempt
def deep_stack():
    status = in_child(dig)
    return stopped("killed") if os.WIFSIGNALED(status) else "the stack has no end"

"""Attaches to pid 1 as a debugger."""

from escape import attempt, call


@attempt
def init_trace():
    call("ptrace", 16, 1, 0, 0)
    return "attached to init"

"""Asks to be traced."""

from escape import attempt, call


@attempt
def trace_child():
    call("ptrace", 0, 0, 0, 0)
    return "is traced"

"""A module."""

from escape import attempt, call


@attempt
def kernel_module():
    call("init_module", b"", 0, b"")
    return "loaded a module"

"""Removes a kernel module; the name does not exist."""

from escape import attempt, call


@attempt
def remove_kernel_module():
    call("delete_module", b"glovebox_escape_none", 0x800)
    return "removed a module"

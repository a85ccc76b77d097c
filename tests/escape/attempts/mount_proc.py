"""A full /proc."""

from escape import attempt, call


@attempt
def mount_proc():
    call("mount", b"proc", b"/tmp", b"proc", 0, None)
    return "mounted proc"

"""Mounts a tmpfs without bounds."""

from escape import attempt, call


@attempt
def mount_tmpfs():
    call("mount", b"none", b"/tmp", b"tmpfs", 0, None)
    return "mounted tmpfs"

"""The first of the new calls."""

from escape import attempt, call


@attempt
def mount_by_fsopen():
    call("fsopen", b"tmpfs", 0)
    return "opened a file system"

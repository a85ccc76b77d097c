"""Takes the root's file system to change it."""

from escape import attempt, call


@attempt
def mount_by_fspick():
    call("fspick", -100, b"/", 0)
    return "picked the root"

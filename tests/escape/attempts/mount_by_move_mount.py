"""Moves a mount."""

from escape import attempt, call


@attempt
def mount_by_move_mount():
    call("move_mount", -100, b"/proc", -100, b"/tmp", 0)
    return "moved /proc"

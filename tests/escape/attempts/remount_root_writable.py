"""The root, writable."""

from escape import attempt, call


@attempt
def remount_root_writable():
    call("mount", None, b"/", None, 32 | 4096, None)
    return "remounted the root"

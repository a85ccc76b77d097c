"""A detached copy of the root."""

from escape import attempt, call


@attempt
def mount_by_open_tree():
    call("open_tree", -100, b"/", 1)
    return "copied the tree"

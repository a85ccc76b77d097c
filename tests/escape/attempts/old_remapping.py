"""An old call that nobody uses."""

from escape import attempt, call


@attempt
def old_remapping():
    call("remap_file_pages", 0, 0, 0, 0, 0)
    return "remapped"

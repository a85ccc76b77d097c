"""remap_file_pages(2), an old call that programs do not use."""

from escape import attempt, call


@attempt
def old_remapping():
    call("remap_file_pages", 0, 0, 0, 0, 0)
    return "remapped"

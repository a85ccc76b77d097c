"""Another root."""

from escape import attempt, call


@attempt
def pivot_root():
    call("pivot_root", b"/tmp", b"/tmp")
    return "has another root"

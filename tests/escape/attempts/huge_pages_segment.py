"""A segment of huge pages."""

from escape import attempt, call


@attempt
def huge_pages_segment():
    call("shmget", 0, 2 << 20, 0o4000 | 0o1600)
    return "has huge pages"

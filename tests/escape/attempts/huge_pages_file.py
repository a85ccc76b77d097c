"""An anonymous file of huge pages."""

from escape import attempt, call


@attempt
def huge_pages_file():
    call("memfd_create", b"escape", 4)
    return "has huge pages"

"""Adds a user to /etc/passwd."""

from escape import attempt


@attempt
def append_to_passwd():
    open("/etc/passwd", "a").close()
    return "opened /etc/passwd for writing"

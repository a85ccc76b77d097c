"""A key for the user's keyring, which all processes of the user share."""

from escape import attempt, call


@attempt
def keyring_add():
    call("add_key", b"user", b"escape", b"x", 1, -4)
    return "added a key"

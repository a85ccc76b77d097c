"""A session keyring."""

from escape import attempt, call


@attempt
def keyring_join():
    call("keyctl", 1, None, 0, 0, 0)
    return "has a session keyring"

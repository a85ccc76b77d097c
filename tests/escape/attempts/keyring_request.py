"""A key that the host would fetch."""

from escape import attempt, call


@attempt
def keyring_request():
    call("request_key", b"user", b"escape", None, -4)
    return "requested a key"

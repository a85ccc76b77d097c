"""The host's password hashes."""

from escape import attempt


@attempt
def read_host_shadow():
    text = open("/etc/shadow", encoding="utf-8").read()
    return f"read {len(text)} bytes"

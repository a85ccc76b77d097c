"""The host's machine id."""

from escape import attempt


@attempt
def machine_id():
    text = open("/etc/machine-id", encoding="utf-8").read()
    if not text.strip():
        raise FileNotFoundError(2, "empty")
    return text

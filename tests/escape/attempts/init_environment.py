"""The variables of pid 1."""

from escape import attempt


@attempt
def init_environment():
    text = open("/proc/1/environ", "rb").read()
    return f"read {text!r}"

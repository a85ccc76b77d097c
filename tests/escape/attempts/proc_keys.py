"""The list of keys."""

from escape import attempt


@attempt
def proc_keys():
    return open("/proc/keys", encoding="utf-8").read()

"""Leaves the root by `..`."""

from escape import HOST, attempt


@attempt
def walk_up_from_root():
    return open("/" + "../" * 40 + HOST["canary"].lstrip("/"), encoding="utf-8").read()

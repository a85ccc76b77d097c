"""A mount namespace."""

from escape import attempt, call


@attempt
def unshare_mounts():
    call("unshare", 0x20000)
    return "has own mounts"

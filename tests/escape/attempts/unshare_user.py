"""A user namespace of one's own, where one is root."""

from escape import attempt, call


@attempt
def unshare_user():
    call("unshare", 0x10000000)
    return "is root of a namespace"

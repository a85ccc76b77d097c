"""A user namespace together with a network namespace."""

from escape import attempt, call


@attempt
def unshare_user_and_network():
    call("unshare", 0x50000000)
    return "is root of a network"

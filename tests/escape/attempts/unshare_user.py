"""unshare(2) of a user namespace, in which the program would be root."""

from escape import attempt, call


@attempt
def unshare_user():
    call("unshare", 0x10000000)
    return "is root of a namespace"

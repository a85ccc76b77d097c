"""A time namespace."""

from escape import attempt, call


@attempt
def unshare_time():
    call("unshare", 0x80)
    return "has an own time"

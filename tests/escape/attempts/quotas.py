"""Quotas of the host."""

from escape import attempt, call


@attempt
def quotas():
    call("quotactl", 0x800001, b"/dev/sda", 0, None)
    return "asked for quotas"

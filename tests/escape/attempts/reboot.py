"""Asks for the command that only switches Ctrl-Alt-Del off."""

from escape import attempt, call


@attempt
def reboot():
    call("reboot", 0xfee1dead, 672274793, 0, 0)
    return "may reboot"

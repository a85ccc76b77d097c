"""Hangs the terminal up."""

from escape import attempt, call


@attempt
def hang_up():
    call("vhangup")
    return "hung up"

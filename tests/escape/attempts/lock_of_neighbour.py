"""A lock on a file of the template that another sandbox holds."""

import fcntl

from escape import attempt, stopped


@attempt
def lock_of_neighbour():
    with open("/usr/bin/env", "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return "sees the neighbour's lock"
    return stopped("bounded")

"""memfd_secret(2): memory that other processes cannot see."""

from escape import attempt, call


@attempt
def secret_memory():
    call("memfd_secret", 0)
    return "has secret memory"

"""Memory that nobody else can see."""

from escape import attempt, call


@attempt
def secret_memory():
    call("memfd_secret", 0)
    return "has secret memory"

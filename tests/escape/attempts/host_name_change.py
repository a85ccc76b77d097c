"""Another name for the host."""

from escape import attempt, call


@attempt
def host_name_change():
    call("sethostname", b"escape", 6)
    return "named the host"

"""Takes the stream to gloveboxd out of pid 1."""

from escape import attempt, call


@attempt
def init_take_descriptor():
    file = call("pidfd_open", 1, 0)
    call("pidfd_getfd", file, 3, 0)
    return "took a descriptor of init"

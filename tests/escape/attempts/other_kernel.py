"""kexec_load(2) without segments, so that a success would change nothing."""

from escape import attempt, call


@attempt
def other_kernel():
    call("kexec_load", 0, 0, None, 0)
    return "may load a kernel"

"""Another kernel; no segments, so that nothing would happen."""

from escape import attempt, call


@attempt
def other_kernel():
    call("kexec_load", 0, 0, None, 0)
    return "may load a kernel"

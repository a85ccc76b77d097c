"""PR_SET_PTRACER lets any process trace this one."""

from escape import attempt, call


@attempt
def allow_tracer():
    call("prctl", 0x59616d61, 0xffffffffffffffff, 0, 0, 0)
    return "may be traced"

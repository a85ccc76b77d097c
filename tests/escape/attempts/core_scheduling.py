"""PR_SCHED_CORE: a processor core that no other process shares."""

from escape import attempt, call


@attempt
def core_scheduling():
    call("prctl", 62, 1, 0, 0, 0)
    return "has a core of its own"

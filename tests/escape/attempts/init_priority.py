"""Makes pid 1 the least important process."""

from escape import attempt, call


@attempt
def init_priority():
    call("setpriority", 0, 1, 19)
    return "made init nice"

"""Makes pid 1 the least important process, by its user id."""

from escape import attempt, call


@attempt
def init_priority_by_user():
    call("setpriority", 2, 0, 19)
    return "made all of the user nice"

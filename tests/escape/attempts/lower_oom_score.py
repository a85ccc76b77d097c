"""Hides from the out-of-memory killer. The floor is what it was when somebody with CAP_SYS_RESOURCE set it."""

from escape import attempt


@attempt
def lower_oom_score():
    before = int(open("/proc/self/oom_score_adj", encoding="utf-8").read())
    with open("/proc/self/oom_score_adj", "w", encoding="utf-8") as file:
        file.write("0")
    return f"went from {before} to 0"

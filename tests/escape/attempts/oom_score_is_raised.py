"""A sandbox goes first when the host runs out of memory."""

from escape import attempt, stopped


@attempt
def oom_score_is_raised():
    score = int(open("/proc/self/oom_score_adj", encoding="utf-8").read())
    return stopped("bounded") if score > 0 else f"has the score {score}"

"""The out-of-memory score is raised, so that the host kills sandboxes first."""

from escape import attempt, stopped


@attempt
def oom_score_is_raised():
    score = int(open("/proc/self/oom_score_adj", encoding="utf-8").read())
    return stopped("bounded") if score > 0 else f"has the score {score}"

"""Hides from the out-of-memory killer. The floor is what it was when somebody with CAP_SYS_RESOURCE set it."""

import os

from escape import attempt


@attempt
def lower_oom_score():
    before = int(open("/proc/self/oom_score_adj", encoding="utf-8").read())
    file = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    os.write(file, b"0")
    return f"went from {before} to 0"

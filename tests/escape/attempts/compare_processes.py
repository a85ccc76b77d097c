"""Compares kernel objects of two processes."""

import os

from escape import attempt, call


@attempt
def compare_processes():
    call("kcmp", os.getpid(), os.getpid(), 0, 0, 0)
    return "compared kernel objects"

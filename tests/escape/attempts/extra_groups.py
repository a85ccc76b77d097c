"""A supplementary group."""

import os

from escape import attempt


@attempt
def extra_groups():
    os.setgroups([0, 6, 42])
    return "is in groups of the host"

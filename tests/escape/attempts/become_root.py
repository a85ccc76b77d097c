"""Takes user id 0."""

import os

from escape import attempt


@attempt
def become_root():
    os.setuid(0)
    return "is root"

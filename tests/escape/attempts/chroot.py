"""A new root, the first half of the oldest way out."""

import os

from escape import attempt


@attempt
def chroot():
    os.chroot("/tmp")
    return "has a new root"

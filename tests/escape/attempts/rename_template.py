"""Moves a folder of the template away."""

import os

from escape import attempt


@attempt
def rename_template():
    os.rename("/usr", "/usr-old")
    return "moved /usr"

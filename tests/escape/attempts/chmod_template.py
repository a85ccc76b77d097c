"""The set-user-id bit for a program of the template."""

import os

from escape import attempt


@attempt
def chmod_template():
    os.chmod("/usr/bin/env", 0o4755)
    return "changed the mode of a program"

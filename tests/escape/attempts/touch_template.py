"""Times of a file of the template: seen by the neighbours."""

import os

from escape import attempt


@attempt
def touch_template():
    os.utime("/usr/bin/env", (0, 0))
    return "changed times of a program"

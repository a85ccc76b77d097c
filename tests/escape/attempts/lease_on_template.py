"""A lease on a file of the template."""

import os

from escape import attempt, call


@attempt
def lease_on_template():
    call("fcntl", os.open("/etc/passwd", os.O_RDONLY), 1024, 0)
    return "has a lease"

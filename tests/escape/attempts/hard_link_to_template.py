"""A second name in /tmp for a file of the template."""

import os

from escape import attempt


@attempt
def hard_link_to_template():
    os.link("/usr/bin/env", "/tmp/escape-link")
    return "made a hard link"

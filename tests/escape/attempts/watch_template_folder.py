"""Watches a folder of the template."""

import os

from escape import attempt, call


@attempt
def watch_template_folder():
    call("fcntl", os.open("/etc", os.O_RDONLY), 1026, 1)
    return "watches a folder"

"""A file that another sandbox has in /tmp."""

import os

from escape import attempt


@attempt
def file_of_neighbour():
    os.stat("/tmp/escape-neighbour")
    return "found the neighbour's file"

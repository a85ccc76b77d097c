"""The descriptors of pid 1: the stream to gloveboxd is among them."""

import os

from escape import attempt


@attempt
def init_descriptors():
    return f"sees {os.listdir('/proc/1/fd')}"

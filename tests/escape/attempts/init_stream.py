"""The stream to gloveboxd itself."""

import os

from escape import attempt


@attempt
def init_stream():
    os.open("/proc/1/fd/3", os.O_RDWR)
    return "opened the stream of init"

"""Puts a page of a template file into a pipe by sendfile(2)."""

import os

from escape import attempt, call


@attempt
def splice_by_sendfile():
    file = os.open("/etc/passwd", os.O_RDONLY)
    _, writer = os.pipe()
    call("sendfile", writer, file, None, 1)
    return "a page of the template went into a pipe"

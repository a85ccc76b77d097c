"""Pages shared by two pipes."""

import os

from escape import attempt, call


@attempt
def splice_by_tee():
    reader, writer = os.pipe()
    _, other = os.pipe()
    os.write(writer, b"x")
    call("tee", reader, other, 1, 0)
    return "two pipes share a page"

"""From the working folder further up, one chdir at a time, then down to the host's file."""

import os

from escape import HOST, attempt


@attempt
def walk_up_from_cwd():
    for _ in range(40):
        os.chdir("..")
    return open(HOST["canary"].lstrip("/"), encoding="utf-8").read()

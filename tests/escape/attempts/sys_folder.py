"""/sys shows the machine."""

import os

from escape import attempt


@attempt
def sys_folder():
    names = os.listdir("/sys")
    if not names:
        raise FileNotFoundError(2, "empty")
    return f"/sys has {names}"

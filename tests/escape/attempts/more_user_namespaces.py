"""A user namespace; when the filter lets the call through, the number of them that may be made is none."""

import os

from escape import attempt, call


@attempt
def more_user_namespaces():
    pid = call("clone", 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "made a user namespace"

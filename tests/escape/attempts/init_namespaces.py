"""Opens the namespaces of pid 1."""

import os

from escape import attempt


@attempt
def init_namespaces():
    os.open("/proc/1/ns/user", os.O_RDONLY)
    return "opened a namespace of init"

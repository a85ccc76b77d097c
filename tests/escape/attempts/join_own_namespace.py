"""The own network namespace, to see whether the call is open."""

import os

from escape import attempt, call


@attempt
def join_own_namespace():
    call("setns", os.open("/proc/self/ns/net", os.O_RDONLY), 0)
    return "joined a namespace"

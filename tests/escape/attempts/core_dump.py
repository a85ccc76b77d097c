"""A crash: nothing may be dumped. The limit must be 1, since 0 is not asked when dumps go to a program."""

import os
import resource
import signal

from escape import attempt, in_child, stopped


@attempt
def core_dump():
    status = in_child(lambda: os.kill(os.getpid(), signal.SIGSEGV))
    if os.WCOREDUMP(status) or resource.getrlimit(resource.RLIMIT_CORE)[1] not in (0, 1):
        return "dumped core"
    return stopped("bounded")

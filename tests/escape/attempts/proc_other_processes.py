"""Numbers in /proc that are neither ours nor our parent's."""

import os

from escape import attempt, stopped


@attempt
def proc_other_processes():
    mine = {os.getpid(), os.getppid()}
    seen = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    foreign = set()
    for pid in seen - mine:
        try:
            if os.stat(f"/proc/{pid}").st_uid != os.getuid():
                foreign.add(pid)
        except OSError:
            pass
    foreign.discard(1)
    return f"sees {foreign}" if foreign or max(seen) > 5000 else stopped("bounded")

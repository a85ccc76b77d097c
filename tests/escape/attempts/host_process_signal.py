"""Signal 0 to a process of the host, by its number there."""

import os

from escape import HOST, attempt


@attempt
def host_process_signal():
    os.kill(HOST["pid"], 0)
    return f"process {HOST['pid']} of the host can be signalled"

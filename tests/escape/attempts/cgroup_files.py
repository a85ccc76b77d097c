"""The control group file system."""

import os

from escape import attempt


@attempt
def cgroup_files():
    return f"listed {os.listdir('/sys/fs/cgroup')}"

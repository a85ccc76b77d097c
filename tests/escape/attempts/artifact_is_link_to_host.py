"""A symbolic link where an artifact is looked for: it must not come back as the host's file."""

import os

from escape import HOST, attempt, stopped


@attempt
def artifact_is_link_to_host():
    os.symlink(HOST["canary"], "/workspace/plot.png")
    os.symlink("/etc/passwd", "/workspace/table.csv")
    return stopped("not-returned")

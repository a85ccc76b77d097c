"""Watches a whole file system."""

from escape import attempt, call


@attempt
def watch_file_system():
    call("fanotify_init", 0x200, 0)
    return "watches a file system"

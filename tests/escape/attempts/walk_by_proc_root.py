"""/proc/self/root is a magic link; from there further up."""

from escape import HOST, attempt


@attempt
def walk_by_proc_root():
    return open("/proc/self/root/../../.." + HOST["canary"], encoding="utf-8").read()

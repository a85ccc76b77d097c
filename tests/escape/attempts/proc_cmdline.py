"""How the host was started."""

from escape import attempt


@attempt
def proc_cmdline():
    return open("/proc/cmdline", encoding="utf-8").read()

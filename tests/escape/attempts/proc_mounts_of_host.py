"""File systems of the host in the list of mounts."""

from escape import attempt, stopped


@attempt
def proc_mounts_of_host():
    kinds = {line.split(" - ")[1].split()[0] for line in open("/proc/self/mountinfo", encoding="utf-8")}
    bad = kinds & {"cgroup", "cgroup2", "sysfs", "securityfs", "debugfs", "tracefs", "bpf", "nsfs", "fusectl"}
    return f"mounted: {bad}" if bad else stopped("bounded")

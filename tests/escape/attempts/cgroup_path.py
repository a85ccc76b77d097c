"""Where in the host's tree of control groups we are."""

from escape import attempt, stopped


@attempt
def cgroup_path():
    lines = open("/proc/self/cgroup", encoding="utf-8").read().split()
    known = [line for line in lines if not line.endswith(":/")]
    return f"sees {known}" if any("glovebox" in line for line in known) else stopped("bounded")

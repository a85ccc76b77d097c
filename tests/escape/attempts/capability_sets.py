"""All five sets must be empty."""

from escape import attempt, stopped


@attempt
def capability_sets():
    lines = open("/proc/self/status", encoding="utf-8").read().splitlines()
    sets = {line.split()[0]: int(line.split()[1], 16) for line in lines if line.startswith("Cap")}
    return f"has {sets}" if any(sets.values()) else stopped("bounded")

"""Where the memory of pid 1 lies."""

from escape import attempt, stopped


@attempt
def init_maps():
    text = open("/proc/1/maps", encoding="utf-8").read()
    return f"read {len(text)} bytes" if text else stopped("bounded")

"""A quarter of a second of work with a tenth of a processor: it must take longer."""

import time

from escape import attempt, stopped

LIMITS = {"cpus": 0.1, "wall_ms": 10000}


@attempt
def processor_share():
    start = time.monotonic()
    while time.process_time() < 0.25:
        pass
    share = 0.25 / (time.monotonic() - start)
    return stopped("bounded") if share < 0.15 else f"has {share:.2f} of a processor"

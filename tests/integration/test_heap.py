"""Memory that gloveboxd used for a peak goes back to the kernel."""

import os
import pathlib
import time

import pytest
from serving import Serving, state_of_its_own

pytestmark = [pytest.mark.usefixtures("python_template"),
              pytest.mark.skipif(os.geteuid() != 0, reason="gloveboxd is not dumpable: only root reads its /proc files")]

SESSIONS = 70  # some 130 KiB of heap each
KIB = 1024


def resident(service):
    pages = int(pathlib.Path(f"/proc/{service.children()['gloveboxd']}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") // KIB


def test_memory_of_many_sessions_is_given_back(glovebox):
    state_of_its_own(glovebox)
    with Serving(glovebox, slots=SESSIONS + 8) as service:
        assert service.run("print(1)").json["stdout"] == "1\n"
        before = resident(service)
        for _ in range(2):  # the second time the heap has been trimmed once
            sessions = [service.call("POST", "/v1/sessions", {"policy": "minimal"}).json["id"] for _ in range(SESSIONS)]
            peak = resident(service)
            for session in sessions:
                assert service.call("DELETE", f"/v1/sessions/{session}").status == 200
            end = time.monotonic() + 30
            while resident(service) - before > (peak - before) / 2 and time.monotonic() < end:
                time.sleep(0.5)
            assert peak - before > 4 * KIB, f"{peak - before} KiB: the test needs a higher peak"
            assert resident(service) - before <= (peak - before) / 2, f"{before} KiB before, {peak} at the peak, {resident(service)}"


def test_memory_of_large_results_is_given_back(glovebox):
    state_of_its_own(glovebox)
    size, count = 8 << 20, 3
    least = count * size // KIB + 6 * KIB  # results that are kept, and what heap_trim.c leaves
    with Serving(glovebox) as service:
        assert service.run("print(1)").json["stdout"] == "1\n"
        before = resident(service)
        for _ in range(count):
            result = service.run(f"import sys; sys.stdout.write('x' * {size})", policy="data", limits={"output_bytes": size}).json
            assert len(result["stdout"]) == size
        peak = resident(service)
        end = time.monotonic() + 30
        while resident(service) - before > least and time.monotonic() < end:
            time.sleep(0.5)
        assert resident(service) - before <= least, f"{before} KiB before, {peak} at the peak, {resident(service)}"

#!/usr/bin/python3
"""Measures the cost of idle sessions: tests/soak/idle.py BUILD [SESSIONS] [HOURS]

SESSIONS with pandas loaded wait for HOURS of gloveboxd's own time, in which its clocks run 1,000 times as fast as the
world's (fast_clock.c): every timer that it has fires as often as in those hours. What else there is (the spawner, egress,
inits, interpreters) waits for gloveboxd and has no timers of its own while it is idle, so it sees only what gloveboxd does.
A quarter of it, an hour at most, is let pass first; from then on memory, descriptors, processes, files of the state folder and the charged memory of
the sessions must stay. Then every session still has its names. Needs root, for the memory of control groups."""

import json
import os
import pathlib
import struct
import sys
import tempfile
import time

from preloaded_build import preloaded_build
from service import Caller, Service

FACTOR = 1000
GROWTH_BYTES = 256 << 10  # of gloveboxd: a page here and there, and no more with more hours
SESSION_GROWTH_BYTES = 64 << 10


def fast_build(build, folder):
    """A build whose gloveboxd lives by the factor."""
    factor = pathlib.Path(folder, "factor")
    factor.write_bytes(struct.pack("q", 1))
    fast = preloaded_build(build, folder, "libfast_clock.so", FAST_CLOCK=factor)
    return fast, lambda number: write_factor(factor, number)


def write_factor(path, number):
    with open(path, "r+b") as file:
        file.write(struct.pack("q", number))


def below(pid):
    """The service's own processes: those of sandboxes have control groups to tell what they cost."""
    found = []
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [int(child), *below(int(child))]
    return found


def figures(service, caller, places, state):
    by_name = {}
    pids = [service.process.pid, *below(service.process.pid)]
    for pid in pids:
        name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
        if name not in ("glovebox", "gloveboxd.real", "glovebox-spawne", "glovebox-egress"):
            continue
        rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        private = sum(int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith(("Private_Dirty", "Private_Clean")))
        mine = by_name.setdefault(name, [0, 0])
        mine[0] += private
        mine[1] += len(os.listdir(f"/proc/{pid}/fd"))
    files = [entry for entry in pathlib.Path(state).rglob("*") if not entry.is_symlink() and entry.is_file()]
    sessions = [caller.call("GET", place)[1] for place in places]
    return {"processes": len(pids), "memory": {name: both[0] for name, both in by_name.items()},
            "descriptors": {name: both[1] for name, both in by_name.items()}, "files": len(files),
            "file_bytes": sum(entry.stat().st_size for entry in files),
            "session_peak": [session["usage"]["memory_peak_bytes"] for session in sessions],
            "session_cpu": [session["usage"]["cpu_ms"] for session in sessions], "alive": [session["state"] for session in sessions]}


def settle_down(pid):
    """Until no sandbox has come or gone for a second: the pool builds on the host's clock what the fast one has let go."""
    seen, since, end = set(), time.monotonic(), time.monotonic() + 30
    while time.monotonic() - since < 1 and time.monotonic() < end:
        now = set(below(pid))
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.1)


def wait(service, caller, hours, speed):
    """Until so many hours have passed on gloveboxd's clock, as a session's age says it."""
    speed(FACTOR)
    end = time.monotonic() + hours * 3600 / FACTOR
    while time.monotonic() < end:
        time.sleep(0.2)
        caller.call("GET", "/healthz")
    speed(1)
    settle_down(service.process.pid)


def main():
    build, count, hours = sys.argv[1], int((sys.argv[2:] or ["200"])[0]), float((sys.argv[3:] or ["8"])[0])
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        fast, speed = fast_build(build, folder)
        os.environ.setdefault("GLOVEBOX_STATE", f"{build}/state")
        with Service(str(fast), folder, count + 8) as service:
            caller = Caller(service.socket)
            long = {"policy": "data", "idle_seconds": 86400, "ttl_seconds": 86400}
            places = []
            for number in range(count):
                status, made = caller.call("POST", "/v1/sessions", json.dumps(long))
                assert status == 201, made
                places.append(f"/v1/sessions/{made['id']}")
                code = json.dumps({"code": f"import pandas as pd\nx = {number}\npd.DataFrame({{'a': range(1000)}}).describe()"})
                status, result = caller.call("POST", f"{places[-1]}/contexts/python/run", code)
                assert status == 200 and result["status"] == "ok", result
            settle = min(1, hours / 4)
            witness = caller.call("POST", "/v1/sessions", json.dumps({"policy": "data", "idle_seconds": int(settle * 1800)}))[1]
            wait(service, caller, settle, speed)
            ended = caller.call("GET", f"/v1/sessions/{witness['id']}")[1]["ended"]
            if not ended or ended["why"] != "idle":
                wrong.append("its clocks do not run as fast as they should: who waits too long does not end")
            before = figures(service, caller, places, f"{folder}/state")
            wait(service, caller, hours - settle, speed)
            after = figures(service, caller, places, f"{folder}/state")
            for name, least in before["memory"].items():
                grown = after["memory"][name] - least
                print(f"{name:16} memory {least >> 10} KiB, {grown / 1024:+.0f}; descriptors {before['descriptors'][name]}, "
                      f"{after['descriptors'][name] - before['descriptors'][name]:+d}")
                if grown > GROWTH_BYTES:
                    wrong.append(f"{name} grew by {grown >> 10} KiB")
                if after["descriptors"][name] > before["descriptors"][name]:
                    wrong.append(f"{name} has more descriptors")
            for what in ("processes", "files", "file_bytes"):
                print(f"{what:16} {before[what]}, {after[what] - before[what]:+d}")
                if after[what] > before[what]:
                    wrong.append(f"{what} grew")
            grown = max(b - a for a, b in zip(before["session_peak"], after["session_peak"]))
            used = max(b - a for a, b in zip(before["session_cpu"], after["session_cpu"]))
            print(f"{count} sessions: memory of one at most {max(after['session_peak']) / (1 << 20):.2f} MiB, grew by at most "
                  f"{grown >> 10} KiB and used at most {used} ms of processor time")
            if grown > SESSION_GROWTH_BYTES or used > 20:
                wrong.append("a session that waits does something")
            for number, place in enumerate(places):
                status, result = caller.call("POST", f"{place}/contexts/python/run", json.dumps({"code": "x"}))
                if status != 200 or result["results"][-1]["data"]["text/plain"] != str(number):
                    wrong.append(f"session {number} has lost its names: {result}")
    print(f"{hours:g} hours on gloveboxd's clock: " + ("held" if not wrong else "; ".join(wrong)))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

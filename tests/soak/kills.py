#!/usr/bin/python3
"""Measures how soon the service answers after one of its processes was killed: tests/soak/kills.py BUILD [TIMES]

Under load from eight clients each process of the service is killed (SIGKILL), TIMES times each in turns. For each kill:
how long until a new run is answered well; and every run that was under way must have been answered well or as `lost`
with its cause, and must have begun no more than once, as its own stream of events tells. Where gloveboxd itself was
what died the caller asks the next one, by the id of the run: it must know from its receipts how the run ended. When the
load has ended, every slot but those of the pools must be free within 10 s of the kill. It ends with 1 if a caller heard
something else or it took longer than 2 s, or than 10 s for the slots. Each kill is a line; one that took too long says
what was held when, and what the service wrote."""

import collections
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import sys
import tempfile
import threading
import time

from service import TOP, Caller, Service

BACK_WITHIN_S, SLOTS_WITHIN_S = 2.0, 10.0
SLOW = "import time\nprint('begun', {n}, flush=True)\ntime.sleep(0.3)\nprint('done', {n})"
QUICK = "print('begun', {n})\nprint('done', {n})"


def children(pid):
    with contextlib.suppress(OSError):
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def name_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def find(serve, what):
    """One process of the service, as /proc shows the tree: serve > gloveboxd, spawner > holder > zygote."""
    direct = {name_of(pid): pid for pid in children(serve)}
    if what in ("gloveboxd", "spawner"):
        return next((pid for name, pid in direct.items() if name.startswith(f"glovebox-{what}"[:15]) or name == what), None)
    holders = [holder for name, pid in direct.items() if name.startswith("glovebox-spawne") for holder in children(pid)]
    for holder in holders:
        zygotes = [pid for pid in children(holder) if name_of(pid) == "python3"]
        if zygotes:
            return holder if what == "holder" else zygotes[0]
    return None


class Stream:
    """One run over server-sent events: what its caller was told."""

    def __init__(self, path, code):
        self.events, self.result, self.broken, self.status = collections.Counter(), None, None, None
        self.output, self.id = "", None
        connection = http.client.HTTPConnection("localhost", timeout=30)
        try:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(30)
            connection.sock.connect(path)
            connection.request("POST", "/v1/runs", json.dumps({"code": code, "policy": "data"}),
                               {"Accept": "text/event-stream", "Content-Type": "application/json"})
            response = connection.getresponse()
            self.status = response.status
            self.read(response)
        except (OSError, http.client.HTTPException) as error:
            self.broken = f"{type(error).__name__}: {error}"
        finally:
            connection.close()

    def read(self, response):
        if self.status != 200:
            self.result = json.loads(response.read())
            return
        event = None
        for line in response:
            word, _, rest = line.decode().rstrip("\n").partition(": ")
            if word == "event":
                event = rest
                self.events[event] += 1
            elif word == "data" and event == "started":
                self.id = json.loads(rest)["id"]
            elif word == "data" and event == "stdout":
                self.output += json.loads(rest).get("data", "")
            elif word == "data" and event == "end":
                self.result = json.loads(rest)
                return
        self.broken = "the stream ended without an end"


def told_afterwards(path, run):
    """What the next gloveboxd says of a run that its caller had no answer of: lost, or which receipt there is."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with contextlib.suppress(OSError, http.client.HTTPException):
            status, answer = Caller(path).call("GET", f"/v1/runs/{run}?wait=20")
            if status == 200 and answer["status"] == "lost" and answer["receipt"]:
                return "lost, by its receipt"
            if status == 404 and "its receipt rcp_" in answer["error"]["message"]:
                return "ended, by its receipt"
            return f"HTTP {status}: {answer}"
    return "nothing"


class Load:
    """Clients that send requests until they are stopped; each answer is checked."""

    def __init__(self, path):
        self.path, self.lock, self.number, self.stops = path, threading.Lock(), 0, False
        self.told, self.wrong, self.lost = collections.Counter(), [], collections.Counter()
        self.threads = [threading.Thread(target=self.client, args=(SLOW if i % 2 else QUICK,)) for i in range(8)]
        for thread in self.threads:
            thread.start()

    def client(self, code):
        while not self.stops:
            with self.lock:
                self.number += 1
                number = self.number
            one = Stream(self.path, code.format(n=number))
            afterwards = told_afterwards(self.path, one.id) if one.broken and one.id else None
            with self.lock:
                self.judge(number, one, afterwards)
            if one.broken or one.status != 200:
                time.sleep(0.02)

    def judge(self, number, one, afterwards):
        if one.events["started"] > 1 or one.output.count("begun") > 1:
            self.wrong.append(f"run {number} began twice: {dict(one.events)} {one.output!r}")
        if afterwards:
            self.told[afterwards] += 1
            if "by its receipt" not in afterwards:
                self.wrong.append(f"run {number} ({one.id}) broke off, and then: {afterwards}")
        elif one.broken:
            self.told["hung up"] += 1
        elif one.status != 200:
            self.told[f"HTTP {one.status}"] += 1
            if one.status not in (429, 503):
                self.wrong.append(f"run {number}: HTTP {one.status}: {one.result}")
        elif one.result["status"] == "lost":
            cause = (one.result["error"] or {}).get("value", "")
            self.told["lost"] += 1
            self.lost[cause] += 1
            if not cause:
                self.wrong.append(f"run {number} is lost and nobody says why: {one.result}")
        else:
            self.told[one.result["status"]] += 1
            if one.result["stdout"] != f"begun {number}\ndone {number}\n":
                self.wrong.append(f"run {number}: {one.result['status']} {one.result['stdout']!r}")

    def end(self):
        self.stops = True
        for thread in self.threads:
            thread.join()


def wait_for(service, what):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if pid := find(service.process.pid, what):
            return pid
        time.sleep(0.02)
    raise RuntimeError(f"there is no {what} to kill")


def back_after(path, begin):
    """Seconds until a run that was sent after the kill is answered well."""
    while time.monotonic() < begin + 30:
        one = Stream(path, "print('back')")
        if one.status == 200 and one.result and one.result["stdout"] == "back\n":
            return time.monotonic() - begin
        time.sleep(0.01)
    return float("inf")


def slots_of(path):
    """How many slots there are of each kind; None if there is no answer."""
    connection = http.client.HTTPConnection("localhost", timeout=10)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(10)
        connection.sock.connect(path)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()

        def gauge(name):
            found = re.findall(rf"^glovebox_{name}(?:{{.*}})? (\d+)$", text, re.MULTILINE)
            assert found or name.startswith("pool_"), f"no metric glovebox_{name}"
            return sum(map(int, found))

        return {name: gauge(name) for name in ("slots_in_use", "slots_stuck", "pool_idle", "pool_building", "pool_draining")}
    return None


def slots_back_after(path, begin, seen):
    """Seconds from the kill until no slot is in use or stuck but those of the pools; what there was until then is `seen`."""
    while time.monotonic() < begin + 3 * SLOTS_WITHIN_S:
        slots = slots_of(path)
        if not seen or seen[-1][1] != slots:
            seen.append((time.monotonic() - begin, slots))
        if slots and slots["slots_in_use"] + slots["slots_stuck"] == slots["pool_idle"] + slots["pool_building"]:
            return time.monotonic() - begin
        time.sleep(0.05)
    return float("inf")


def kill_once(service, what):
    pid, log = wait_for(service, what), pathlib.Path(service.log.name)
    written, seen = log.stat().st_size, []
    load = Load(service.socket)
    time.sleep(0.7)
    begin = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    took = back_after(service.socket, begin)
    time.sleep(0.3)
    load.end()
    slots = slots_back_after(service.socket, begin, seen)
    print(f"{what} is killed: back after {took:.2f} s, slots after {slots:.2f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    if took > BACK_WITHIN_S or slots > SLOTS_WITHIN_S:
        print(*(f"{at:8.2f} s {slots}" for at, slots in seen), log.read_bytes()[written:].decode(), sep="\n", flush=True)
    return took, slots, load


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else f"{TOP}/build"
    times = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    wrong = []
    with tempfile.TemporaryDirectory(prefix="glovebox-kills-") as folder, Service(build, folder, 32) as service:
        Stream(service.socket, "print(1)")
        for what in ("zygote", "holder", "spawner", "gloveboxd"):
            took, slots, told, lost = [], [], collections.Counter(), collections.Counter()
            for _ in range(times):
                seconds, slots_seconds, load = kill_once(service, what)
                took.append(seconds)
                slots.append(slots_seconds)
                told += load.told
                lost += load.lost
                wrong += [f"{what}: {item}" for item in load.wrong]
                if load.told["hung up"] and what in ("zygote", "holder"):
                    wrong.append(f"{what}: {load.told['hung up']} callers heard nothing")
                time.sleep(10.5 if what in ("spawner", "gloveboxd") else 0)  # supervisor.c: who lived that long is steady
            print(f"{what:10} back after {sorted(took)[len(took) // 2]:.2f} s at the median, {max(took):.2f} s at most; "
                  f"slots after {max(slots):.2f} s at most; callers were told: {dict(told)}")
            for cause, count in lost.most_common(3):
                print(f"           {count} lost: {cause}")
            if max(slots) > SLOTS_WITHIN_S:
                wrong.append(f"{what}: slots back after {max(slots):.2f} s")
            if max(took) > BACK_WITHIN_S:
                wrong.append(f"{what}: back after {max(took):.2f} s")
    for item in wrong[:20]:
        print(f"WRONG {item:.400}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

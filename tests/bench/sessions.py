#!/usr/bin/python3
"""What a session costs: tests/bench/sessions.py BUILD [--sessions N]. Prints each figure beside its ceiling; the
ceilings are those of a machine with 2 cores and no other work. Needs root, for the memory of control groups."""

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import time

import cells


class Client:
    """One connection that is kept: what is measured is the cell, not the connecting."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)

    def call(self, method, path, request):
        body = json.dumps(request).encode()
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(body)}\r\n\r\n"
                            .encode() + body)
        data, size = b"", None
        while size is None or len(data) < size:
            data += self.socket.recv(1 << 20)
            head, found, _ = data.partition(b"\r\n\r\n")
            if found and size is None:
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                size = len(head) + 4 + int(length[15:])
        return json.loads(data[data.index(b"\r\n\r\n") + 4:])

    def session(self):
        return f"/v1/sessions/{self.call('POST', '/v1/sessions', {'policy': 'data'})['id']}"

    def cell(self, place, code):
        begin = time.perf_counter()
        result = self.call("POST", f"{place}/contexts/python/run", {"code": code})
        assert result["status"] == "ok", result
        return (time.perf_counter() - begin) * 1e3


def connect(path):
    for _ in range(300):
        try:
            return Client(path)
        except OSError:
            time.sleep(0.1)
    raise SystemExit("glovebox serve does not answer")


def say(name, values, ceiling, unit="ms"):
    median = statistics.median(values)
    print(f"{name:34} median {median:7.2f} {unit}, least {min(values):7.2f}, ceiling {ceiling:5.1f}: "
          f"{'held' if median <= ceiling else 'missed'}")


def measure_branches(client, count=24):
    """Of a context with pandas, a frame of 100 MiB and 10 MiB of files: to the answer, when its moment is fixed, and to
    the first result of a cell in it, which waits until all of the memory is there."""
    parent = client.session()
    client.cell(parent, cells.LARGE)
    stands, first = [], []
    for _ in range(count):
        time.sleep(0.3)
        begin = time.perf_counter()
        made = client.call("POST", f"{parent}/branch", {})
        stands.append((time.perf_counter() - begin) * 1e3)
        place = f"/v1/sessions/{made['id']}"
        client.cell(place, cells.USED)
        first.append((time.perf_counter() - begin) * 1e3)
        client.call("DELETE", place, {})
    for name, values in (("branch, to its answer", stands), ("branch, to its first result", first)):
        say(name, values, 15)
        print(f"{'':34} 95 of 100 {sorted(values)[int(len(values) * 0.95)]:.2f} ms")
    client.call("DELETE", parent, {})


def measure(client, count):
    time.sleep(2)  # sandboxes are parked meanwhile
    place = client.session()
    say("cell round trip, 1+1", [client.cell(place, "1+1") for _ in range(500)][50:], 0.6)
    first, pandas = [], []
    for _ in range(12):
        time.sleep(0.4)
        begin = time.perf_counter()
        its = client.session()
        client.cell(its, "1+1")
        first.append((time.perf_counter() - begin) * 1e3)
        pandas.append(client.cell(its, cells.PANDAS))
        client.call("DELETE", its, {})
    say("new session to first result", first, 5)
    say("first pandas cell of a session", pandas, 10)
    idle = [client.session() for _ in range(count)]
    for place in idle:
        client.cell(place, cells.PANDAS)
    charged = [client.call("GET", place, {})["usage"]["memory_peak_bytes"] / (1 << 20) for place in idle]
    say(f"{count} idle sessions with pandas, each", charged, 12, "MiB")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("build")
    options.add_argument("--sessions", type=int, default=24)
    options.add_argument("--branches", action="store_true", help="nothing but branches")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
            os.environ["GLOVEBOX_MEASURE_TEMPLATES"] = "false"
            daemon = subprocess.Popen([os.path.join(options.build, "glovebox"), "serve", "--socket", path,
                                       "--slots", str(options.sessions + 24)], stderr=log)
        try:
            client = connect(path)
            if not options.branches:
                measure(client, options.sessions)
            measure_branches(client)
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(60)


if __name__ == "__main__":
    main()

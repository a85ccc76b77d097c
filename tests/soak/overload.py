#!/usr/bin/python3
"""Measures answers and times at ten times the capacity: tests/soak/overload.py BUILD [SECONDS]

First as many clients as the machine can serve, each asking again at once: how many runs a second, and how long the
slowest of a hundred takes. Then requests arrive ten times as fast, whether or not anybody was answered, and then the
first once more, since a machine that does other work is not the same for long. Those that are admitted must not take
twice as long as normal (p99); the others must be told 429 at once. Ends with 1 otherwise."""

import random
import selectors
import socket
import sys
import tempfile
import time
from pathlib import Path

from service import TOP, Service

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))
import load  # noqa: E402

CLIENTS, TIMES, CONNECTIONS_MOST = 8, 10, 900
CALM_S = 3  # then the queue is long again (engine/schedule/overload.h)
CODE = "print('hello sandbox')"


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


class Arrivals:
    """Requests at a steady rate in the mean, each as soon as its moment has come."""

    def __init__(self, path):
        self.path, self.selector, self.free, self.count = path, selectors.DefaultSelector(), [], 0
        self.took, self.unsent, self.hung_up = {}, 0, 0
        self.request = load.request_bytes(CODE)

    def send(self, now):
        if not self.free and self.count < CONNECTIONS_MOST:
            one = socket.socket(socket.AF_UNIX)
            one.connect(self.path)
            self.count += 1
            self.selector.register(one, selectors.EVENT_READ, [b"", now])
            self.free.append(one)
        if not self.free:
            self.unsent += 1
            return
        one = self.free.pop()
        self.selector.get_key(one).data[:] = b"", now
        try:
            one.sendall(self.request)
        except OSError:
            self.forget(one)

    def forget(self, one):
        self.selector.unregister(one)
        one.close()
        self.count -= 1
        self.hung_up += 1

    def receive(self, key):
        state = key.data
        try:
            piece = key.fileobj.recv(1 << 18)
        except OSError:
            piece = b""
        if not piece:
            if key.fileobj in self.free:
                self.free.remove(key.fileobj)
            self.forget(key.fileobj)
            return
        state[0] += piece
        size = load.answer_size(state[0])
        if size is not None and len(state[0]) >= size:
            status = int(state[0][9:12])
            self.took.setdefault(status, []).append((time.perf_counter() - state[1]) * 1e3)
            self.free.append(key.fileobj)

    def close(self):
        for key in [*self.selector.get_map().values()]:
            key.fileobj.close()
        self.selector.close()

    def run(self, rate, seconds):
        now = time.perf_counter()
        end, due = now + seconds, now
        while (now := time.perf_counter()) < end:
            while due <= now:
                self.send(now)
                due += random.expovariate(rate)
            for key, _ in self.selector.select(max(0, min(due, end) - time.perf_counter())):
                self.receive(key)


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else f"{TOP}/build"
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10
    with tempfile.TemporaryDirectory(prefix="glovebox-overload-") as folder, Service(build, folder, 256) as service:
        rate, took, refused_before = load.flat_out(service.socket, CLIENTS, CODE, b"hello sandbox", seconds, 1)
        arrivals = Arrivals(service.socket)
        arrivals.run(TIMES * rate, seconds)
        arrivals.close()
        time.sleep(CALM_S)
        again, later, refused_later = load.flat_out(service.socket, CLIENTS, CODE, b"hello sandbox", seconds, 1)
    for rate_then, took_then in ((rate, took), (again, later)):
        print(f"normal: {CLIENTS} clients, {rate_then:.0f} runs/s, p50 {quantile(took_then, 0.5):.0f} ms, "
              f"p99 {quantile(took_then, 0.99):.0f} ms")
    wrong, normal = refused_before + refused_later, quantile(took + later, 0.99)  # none is to be refused then
    admitted, refused = arrivals.took.get(200, []), arrivals.took.get(429, [])
    others = {status: len(took) for status, took in arrivals.took.items() if status not in (200, 429)}
    p99 = quantile(admitted, 0.99)
    print(f"{TIMES * rate:.0f} requests/s: {len(admitted) / seconds:.0f} runs/s admitted, p50 {quantile(admitted, 0.5):.0f} ms, "
          f"p99 {p99:.0f} ms ({p99 / normal:.2f} times normal); {len(refused)} were told 429 after "
          f"{quantile(refused, 0.5):.1f} ms, p99 {quantile(refused, 0.99):.1f} ms; hung up {arrivals.hung_up}, "
          f"not sent for want of connections {arrivals.unsent}, other answers {others}, {wrong} wrong")
    return 1 if p99 >= 2 * normal or others or not refused or wrong else 0


if __name__ == "__main__":
    sys.exit(main())

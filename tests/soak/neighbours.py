#!/usr/bin/python3
"""Measures how much one tenant slows down another: tests/soak/neighbours.py BUILD [SECONDS [KIND…]]

A polite tenant runs `print` again and again, beside another tenant of each kind of noise.py, in turns, and alone before,
among and after these. Told are the median and the 99th percentile of its runs, how many times its quiet 99th percentile
that is (of all quiet windows together: one alone has some 500 runs, and a 99th percentile of 6 to 11 ms), and how many
turns of gloveboxd's loop took more than 50 ms. Each kind of noise comes from a tenant of its own, whose quotas are whole;
how its requests were answered is told, too. Ends with 1 and a line for each cause

* if the 99th percentile beside a kind is more than MOST times the quiet one,
* if the quiet one is more than QUIET_MS: the machine must have nothing else to do,
* if a turn of the loop took more than 50 ms, and not because others had the processors,
* if a run of the polite tenant was refused or wrong, or if it was charged for anything but its own runs.

The neighbour's client works on the same processors, which one elsewhere would not. So a kind that is beyond MOST has a
second window, in which its client has only what nobody else wants of them. Both are told. The second is what is judged, if
gloveboxd did no less for the client in it: a client that is slower and asks less says nothing."""

import contextlib
import http.client
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import noise
from service import TOP, Service


MOST = 10
QUIET_EVERY = 10  # kinds
QUIET_MS = 20  # a quiet 99th percentile beyond that is of a machine with other work: the ratios say nothing then


def give_way():
    """To everybody else on the processors. Where the kernel shares these out by session first, nice(2) alone is of no use
    beyond one's own."""
    os.setsid()
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="utf-8") as group:
        group.write("19")
    os.nice(19)


def bother(port, key, kind):
    """The other tenant: asks again at once, whatever it was told. Ends when it is told to, and tells its answers."""
    count, act = noise.KINDS[kind]

    def client():
        while True:
            one = noise.Client(port, key)
            try:
                while True:
                    act(one)
            except (OSError, http.client.HTTPException, ValueError):
                one.connection.close()

    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    for _ in range(count):
        threading.Thread(target=client, daemon=True).start()
    signal.sigwait([signal.SIGTERM])
    os.write(1, json.dumps(noise.Client.answers).encode())
    os._exit(0)


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def slow_turns(owner):
    """Turns of the loop that took longer than 50 ms, and not because it was ready to run and others had the processors."""
    text = owner.call("GET", "/metrics")[1].decode()
    stalls = {cause: int(count) for cause, count in re.findall(r'^glovebox_loop_stalls_total\{cause="(\w+)"\} (\d+)$', text, re.MULTILINE)}
    del stalls["processor"]
    return sum(stalls.values())


def measure(port, keys, kind, seconds, *how):
    """The times of the polite tenant's runs in ms, what was wrong with them, what they used of the processor, the slow turns
    of the loop meanwhile, and how the other tenant was answered."""
    neighbour = subprocess.Popen([sys.executable, "-B", __file__, "--neighbour", str(port), keys["other"], kind, *how],
                                 stdout=subprocess.PIPE, text=True)
    took, wrong, cpu_ms = [], [], 0
    before = slow_turns(noise.Client(port, keys["owner"]))
    try:
        polite = noise.Client(port, keys["polite"])
        time.sleep(1.5)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begin = time.perf_counter()
            status, answer = polite.run("print('polite')", limits={})
            took.append((time.perf_counter() - begin) * 1e3)
            if status != 200 or answer["stdout"] != "polite\n":
                wrong.append(f"{kind}: {status} {json.dumps(answer)[:300]}")
            else:
                cpu_ms += answer["usage"]["cpu_ms"] + 1  # it is rounded down
            time.sleep(0.01)
    finally:
        neighbour.terminate()
        answers = neighbour.communicate(timeout=60)[0]
    time.sleep(0.5)
    # A connection of its own: one that was idle meanwhile may be closed for a new one.
    return took, wrong, cpu_ms, slow_turns(noise.Client(port, keys["owner"])) - before, json.loads(answers)


def make_key(build, state, name, scopes):
    done = subprocess.run([f"{build}/glovebox", "key", "create", "--json", "--name", name, "--tenant", name, "--scope", scopes],
                          check=True, capture_output=True, env=os.environ | {"GLOVEBOX_STATE": state})
    return json.loads(done.stdout)["key"]


def charged_ms(owner, name):
    status, answer = owner.call("GET", "/v1/status")
    assert status == 200, answer
    return sum(row["cpu_ms"] for row in answer["keys"] if row["tenant"] == name)


def in_turns(kinds):
    """The kinds, with quiet windows before, among and after them."""
    for at in range(0, len(kinds), QUIET_EVERY):
        yield from ["quiet", *kinds[at:at + QUIET_EVERY]]
    yield "quiet"


def done_for(answers):
    """What gloveboxd did for a client: requests that it carried out, then those that it refused."""
    return answers.get("2xx", 0), answers.get("4xx", 0)


def judge(kind, times, slow):
    """What does not hold of a kind, as lines."""
    lines = [f"{kind}: {slow} turns of the loop took more than 50 ms"] if slow else []
    if times > MOST:
        lines.append(f"{kind}: p99 is {times:.1f} times quiet, {MOST} is the most")
    return lines


def tell(kind, took, slow, share=""):
    print(f"{kind:12} {len(took):5} runs, p50 {quantile(took, 0.5):7.1f} ms, p99 {quantile(took, 0.99):7.1f} ms{share}, "
          f"most {max(took):7.1f} ms, {slow} slow turns", flush=True)


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else f"{TOP}/build"
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10
    kinds = sys.argv[3:] or [kind for kind in noise.KINDS if kind != "quiet"]
    port = random.randrange(10000, 32000)
    times, wrong, turns, heard, own_ms = {}, [], {}, {}, 0
    with tempfile.TemporaryDirectory(prefix="glovebox-neighbours-") as folder, \
            Service(build, folder, 64, "--listen", f"127.0.0.1:{port}"):
        keys = {name: make_key(build, f"{folder}/state", name, scopes) for name, scopes in
                {"polite": "run", "owner": "audit,admin"}.items()}
        numbers = itertools.count()

        def window(kind, *how):
            nonlocal own_ms
            keys["other"] = make_key(build, f"{folder}/state", f"other-{next(numbers)}", "run,sessions,audit")
            took, wrong_here, cpu_ms, slow, answers = measure(port, keys, kind, seconds, *how)
            wrong.extend(wrong_here[:3])
            own_ms += cpu_ms
            tell(kind, took, slow, f", its neighbour{' gave way and' if how else ''} heard {answers}")
            return took, slow, answers

        for kind in in_turns(kinds):
            took, slow, heard[kind] = window(kind)
            times.setdefault(kind, []).extend(took)
            turns[kind] = turns.get(kind, 0) + slow
        quiet = quantile(times["quiet"], 0.99)
        for kind in [kind for kind in kinds if quantile(times[kind], 0.99) > MOST * quiet]:
            took, slow, answers = window(kind, "--gives-way")
            turns[kind] += slow
            if done_for(answers) >= done_for(heard[kind]):
                times[kind] = took
        charged = charged_ms(noise.Client(port, keys["owner"]), "polite")
    if quiet > QUIET_MS:
        wrong.append(f"p99 is {quiet:.1f} ms beside nothing: the machine has other work, and no kind is judged by it")
    for kind, took in times.items():
        tell(kind, took, turns[kind], f" ({quantile(took, 0.99) / quiet:5.1f} times quiet)")
        wrong += judge(kind, quantile(took, 0.99) / quiet, turns[kind])
    print(f"the polite tenant was charged {charged} ms of processor time, its results say {own_ms} at most")
    if charged > own_ms:
        wrong.append("it was charged for more than its own runs")
    for line in wrong:
        print(f"wrong: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--neighbour"]:
        if sys.argv[5:] == ["--gives-way"]:
            give_way()
        bother(int(sys.argv[2]), sys.argv[3], sys.argv[4])
    sys.exit(main())

#!/usr/bin/python3
"""What does one tenant feel of another? tests/soak/neighbours.py BUILD [SECONDS [KIND…]]

A polite tenant runs `print` again and again, alone and then beside another tenant of each kind below, in turns. Told are
the median and the 99th percentile of its runs and how many times its quiet 99th percentile that is. Ends with 1 if a run
of the polite tenant was refused or wrong. The neighbour's client works on the same machine and is part of what is felt."""

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

from service import TOP, Service

FORKS = "import os\nwhile True:\n try: os.fork()\n except OSError: pass"
CHILDREN = "import os\nwhile True:\n if os.fork() == 0: os._exit(0)\n os.wait()"
FILES = ("import os\nwhile True:\n for n in range(500): open(f'f{n}', 'wb').write(b'x' * 8192)\n"
         " for n in range(500): os.unlink(f'f{n}')")
PING = ("import os, socket\na, b = socket.socketpair()\n"
        "if os.fork() == 0:\n while True: b.send(b.recv(1))\nwhile True:\n a.send(b'x'); a.recv(1)")
MAPS = "import mmap\nwhile True:\n m = mmap.mmap(-1, 8 << 20)\n m[:] = bytes(8 << 20)\n m.close()"
SIGNALS = ("import os, signal\nsignal.signal(10, lambda *_: None)\nparent = os.getpid()\nos.fork() or os.fork()\n"
           "while True: os.kill(parent, 10)")

# How many clients, and what each of them runs.
KINDS = {
    "quiet": (0, ""),
    "spinners": (16, "while True: pass"),
    "memory": (8, "a = []\nwhile True: a.append(bytearray(1 << 20))"),
    "forks": (8, FORKS),
    "children": (8, CHILDREN),
    "files": (8, FILES),
    "ping-pong": (8, PING),
    "mappings": (8, MAPS),
    "signals": (8, SIGNALS),
    "connections": (200, "print(1)"),
}


def ask(connection, key, code, **more):
    body = json.dumps({"code": code, "language": "python", "policy": "minimal"} | more)
    connection.request("POST", "/v1/runs", body, {"Authorization": f"Bearer {key}"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def bother(port, key, kind):
    """The other tenant: asks again at once, whatever it was told. Ends when it is killed."""
    count, code = KINDS[kind]

    def client():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while True:
            try:
                ask(connection, key, code, limits={"wall_ms": 4000})
            except (OSError, http.client.HTTPException):
                connection.close()

    for _ in range(count):
        threading.Thread(target=client, daemon=True).start()
    signal.pause()


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def measure(port, keys, kind, seconds):
    """The times of the polite tenant's runs in ms, and what was wrong with them."""
    neighbour = subprocess.Popen([sys.executable, "-B", __file__, "--neighbour", str(port), keys[1], kind])
    took, wrong = [], []
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        time.sleep(1.5)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begin = time.perf_counter()
            status, answer = ask(connection, keys[0], "print('polite')")
            took.append((time.perf_counter() - begin) * 1e3)
            if status != 200 or answer["stdout"] != "polite\n":
                wrong.append(f"{status} {json.dumps(answer)[:300]}")
            time.sleep(0.01)
    finally:
        neighbour.kill()
        neighbour.wait()
    time.sleep(0.5)
    return took, wrong


def make_key(build, state, name):
    done = subprocess.run([f"{build}/glovebox", "key", "create", "--json", "--name", name, "--tenant", name], check=True,
                          capture_output=True, env=os.environ | {"GLOVEBOX_STATE": state})
    return json.loads(done.stdout)["key"]


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else f"{TOP}/build"
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10
    kinds = sys.argv[3:] or [kind for kind in KINDS if kind != "quiet"]
    port = random.randrange(10000, 32000)
    times, wrong = {}, []
    with tempfile.TemporaryDirectory(prefix="glovebox-neighbours-") as folder, \
            Service(build, folder, 64, "--listen", f"127.0.0.1:{port}"):
        keys = [make_key(build, f"{folder}/state", name) for name in ("polite", "other")]
        for kind in ["quiet", *kinds, "quiet"]:
            took, wrong_here = measure(port, keys, kind, seconds)
            times.setdefault(kind, []).extend(took)
            wrong += wrong_here
    quiet = quantile(times["quiet"], 0.99)
    for kind, took in times.items():
        print(f"{kind:12} {len(took):5} runs, p50 {quantile(took, 0.5):7.1f} ms, p99 {quantile(took, 0.99):7.1f} ms "
              f"({quantile(took, 0.99) / quiet:5.1f} times quiet), most {max(took):7.1f} ms")
    for line in wrong[:5]:
        print(f"wrong: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--neighbour"]:
        bother(int(sys.argv[2]), sys.argv[3], sys.argv[4])
    sys.exit(main())

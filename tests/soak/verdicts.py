#!/usr/bin/python3
"""Checks that results name the right limit: tests/soak/verdicts.py BUILD [RUNS]

For each limit, programs that run into it in different ways, and programs that come close and must not be blamed:
RUNS of each limit's (default 20), in parallel, in the sandboxes of one service. A verdict other than the row's is
printed whole and counts; the table at the end says how many were right and by how much time limits were overrun.
It ends with 1 if a single one was wrong."""

import collections
import concurrent.futures
import random
import sys
import tempfile
import threading
import time

from service import TOP, Caller, Service

KiB, MiB = 1 << 10, 1 << 20
SMALL = {"memory_bytes": 48 * MiB, "wall_ms": 20000, "cpu_ms": 20000}
DISK = {"disk_bytes": 4 * MiB, "wall_ms": 20000, "cpu_ms": 20000}
FEW = {"processes": 16, "wall_ms": 20000, "cpu_ms": 20000}

SPIN = "while True: pass"
SLEEP = "import time\ntime.sleep(60)"
DEAF = "import signal, time\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)\nwhile True: time.sleep(1)"
DAEMON = ("import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: time.sleep(60)\n  os._exit(0)\n"
          "time.sleep(60)")
TWO_SPIN = "import os\nos.fork()\nwhile True: pass"
MANY_SPIN = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"

GROW = "a = []\nwhile True: a.append(bytes(1 << 20))"
GROW_IN_CHILD = "import os\npid = os.fork()\nif pid == 0:\n  a = []\n  while True: a.append(bytes(1 << 20))\nos.waitpid(pid, 0)\nraise SystemExit(1)"
MEMFD = "import os\nf = os.memfd_create('a')\nwhile True: os.write(f, bytes(1 << 20))"
SHARED = "f = open('/dev/shm/a', 'wb')\nwhile True: f.write(bytes(1 << 20))"
PIPES = ("import os, fcntl\nkept = []\nwhile True:\n  r, w = os.pipe()\n  os.set_blocking(w, False)\n  kept.append((r, w))\n"
         "  try:\n    while True: os.write(w, bytes(65536))\n  except BlockingIOError: pass")
MAPPED = "import mmap\nkept = []\nwhile True:\n  m = mmap.mmap(-1, 4 << 20)\n  m.write(bytes(4 << 20))\n  kept.append(m)"

FORKS = "import os, time\nwhile True:\n  if os.fork() == 0: time.sleep(60)"
STORM = "import os\nwhile True: os.fork()"
THREADS = "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"

FILL = "f = open('big', 'wb')\nwhile True: f.write(bytes(65536)); f.flush()"
FILL_MANY = "i = 0\nwhile True:\n  open(f'f{i}', 'wb').write(bytes(65536))\n  i += 1"
COPY = "import os, subprocess\nsubprocess.run(['cp', os.path.realpath('/usr/bin/python3'), 'a'], check=True)"
FILL_TMP = "f = open('/tmp/big', 'wb')\nwhile True: f.write(bytes(65536)); f.flush()"

EMPTY_FILES = "i = 0\nwhile True:\n  open(f'f{i}', 'w').close()\n  i += 1"
FOLDERS = "import os\ni = 0\nwhile True:\n  os.mkdir(f'd{i}')\n  i += 1"
LINKS = "import os\ni = 0\nwhile True:\n  os.symlink('nowhere', f'l{i}')\n  i += 1"

FLOOD = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
FLOOD_ERR = "import os\nwhile True: os.write(2, b'y' * 65536)"
FLOOD_CHILD = "import subprocess\nsubprocess.run(['yes'])"

# (limit it is about, its limits, code, verdict: the limit's name, or ok, or error)
ROWS = [
    ("wall", {"wall_ms": 150}, SPIN, "wall"),
    ("wall", {"wall_ms": 150}, SLEEP, "wall"),
    ("wall", {"wall_ms": 150}, DEAF, "wall"),
    ("wall", {"wall_ms": 150}, DAEMON, "wall"),
    ("wall", {"wall_ms": 3000}, "import time\ntime.sleep(0.2)", "ok"),
    ("cpu", {"cpu_ms": 120, "wall_ms": 20000}, SPIN, "cpu"),
    ("cpu", {"cpu_ms": 120, "wall_ms": 20000}, TWO_SPIN, "cpu"),
    ("cpu", {"cpu_ms": 120, "wall_ms": 20000}, MANY_SPIN, "cpu"),
    ("cpu", {"cpu_ms": 2000, "wall_ms": 20000}, "import time\nwhile time.process_time() < 0.1: pass", "ok"),
    ("memory", SMALL, GROW, "memory"),
    ("memory", SMALL, GROW_IN_CHILD, "memory"),
    ("memory", SMALL, MEMFD, "memory"),
    ("memory", SMALL | {"disk_bytes": 512 * MiB}, SHARED, "memory"),
    ("memory", SMALL | {"memory_bytes": 24 * MiB}, PIPES, "memory"),
    ("memory", SMALL, MAPPED, "memory"),
    ("memory", SMALL, "a = bytes(16 << 20)\nprint(len(a))", "ok"),
    ("memory", SMALL, "a = bytes(16 << 20)\nraise ValueError('mine')", "error"),
    ("processes", FEW, FORKS, "processes"),
    ("processes", FEW, STORM, "processes"),
    ("processes", FEW, THREADS, "processes"),
    ("processes", FEW, "import os\nfor _ in range(8):\n  if os.fork() == 0: os._exit(0)\nwhile True:\n  try: os.wait()\n  except ChildProcessError: break", "ok"),
    ("disk", DISK, FILL, "disk"),
    ("disk", DISK, FILL_MANY, "disk"),
    ("disk", DISK, COPY, "disk"),
    ("disk", DISK, FILL_TMP, "disk"),
    ("disk", DISK, "open('big', 'wb').write(bytes(3 << 20))", "ok"),
    ("disk", DISK, "open('big', 'wb').write(bytes(3 << 20))\nraise OSError(28, 'No space left on device')", "error"),
    ("inodes", {"inodes": 64, "wall_ms": 20000}, EMPTY_FILES, "inodes"),
    ("inodes", {"inodes": 64, "wall_ms": 20000}, FOLDERS, "inodes"),
    ("inodes", {"inodes": 64, "wall_ms": 20000}, LINKS, "inodes"),
    ("inodes", {"inodes": 256, "wall_ms": 20000}, "for i in range(100): open(f'f{i}', 'w').close()", "ok"),
    ("output", {"output_bytes": 4 * KiB, "wall_ms": 20000, "cpu_ms": 20000}, FLOOD, "output"),
    ("output", {"output_bytes": 4 * KiB, "wall_ms": 20000, "cpu_ms": 20000}, FLOOD_ERR, "output"),
    ("output", {"output_bytes": 4 * KiB, "wall_ms": 20000, "cpu_ms": 20000}, FLOOD_CHILD, "output"),
    ("output", {"output_bytes": 4 * KiB}, "print('x' * 4095)", "ok"),
    ("output", {"output_bytes": 4 * KiB}, "print('x' * 5000)", "ok, hits output"),
    ("artifacts", {"artifacts_bytes": 64 * KiB}, "for i in range(4): open(f'f{i}', 'wb').write(bytes(30000))", "ok, hits artifacts"),
    ("artifacts", {"artifacts_bytes": 64 * KiB}, "for i in range(2): open(f'f{i}', 'wb').write(bytes(30000))", "ok"),
    ("artifact_files", {"artifact_files": 8}, "for i in range(9): open(f'f{i}', 'w').close()", "ok, hits artifact_files"),
    ("artifact_files", {"artifact_files": 8}, "for i in range(8): open(f'f{i}', 'w').close()", "ok"),
]


def verdict_of(result):
    if result["status"] == "limit":
        return result["limit"]["name"]
    hits = ", ".join(hit["name"] for hit in result["limit_hits"])
    return result["status"] + (f", hits {hits}" if hits and result["status"] == "ok" else "")


class Tally:
    def __init__(self):
        self.lock = threading.Lock()
        self.right, self.wrong, self.over_ms = collections.Counter(), [], collections.defaultdict(list)

    def take(self, row, status, result):
        limit, limits, code, expected = row
        found = verdict_of(result) if status == 200 else f"HTTP {status}"
        with self.lock:
            if found == expected:
                self.right[limit] += 1
            else:
                self.wrong.append((row, found, result))
            if found == "wall":
                self.over_ms[limit].append(result["usage"]["wall_ms"] - limits["wall_ms"])

    def show(self, runs, seconds):
        for row, found, result in self.wrong[:20]:
            code = row[2].replace("\n", "; ")
            print(f"WRONG {row[0]}: {found} instead of {row[3]}: {code}\n      {str(result)[:1500]}")
        wrong = collections.Counter(row[0] for row, _, _ in self.wrong)
        print(f"{'limit':16}{'right':>8}{'wrong':>8}")
        for limit in dict.fromkeys(row[0] for row in ROWS):
            over = sorted(self.over_ms[limit])
            text = f"   overrun {over[len(over) // 2]} ms at the median, {over[-1]} ms at most" if over else ""
            print(f"{limit:16}{self.right[limit]:8}{wrong[limit]:8}{text}")
        print(f"{sum(self.right.values())} of {runs} verdicts were right, in {seconds:.0f} s")


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else f"{TOP}/build"
    each = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    jobs = []
    for limit in dict.fromkeys(row[0] for row in ROWS):
        rows = [row for row in ROWS if row[0] == limit]
        jobs += [rows[i % len(rows)] for i in range(each)]
    random.shuffle(jobs)
    tally, local, begin = Tally(), threading.local(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="glovebox-verdicts-") as folder, Service(build, folder, 8) as service:

        def work(row):
            if not hasattr(local, "caller"):
                local.caller = Caller(service.socket)
            tally.take(row, *local.caller.run(code=row[2], limits=row[1]))

        with concurrent.futures.ThreadPoolExecutor(4) as callers:
            for done in callers.map(work, jobs):
                assert done is None
    tally.show(len(jobs), time.monotonic() - begin)
    return 1 if tally.wrong or not tally.right else 0


if __name__ == "__main__":
    sys.exit(main())

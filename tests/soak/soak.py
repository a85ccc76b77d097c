#!/usr/bin/python3
"""Checks that memory, descriptors and processes of a service stay the same: tests/soak/soak.py BUILD RUNS [SECONDS]

Ordinary and hostile programs from 8 clients, each with the verdict and the output that it must get, until RUNS have
been made (or SECONDS have passed). Every program prints a number of its own, so that an answer that belongs to another
run is seen. Meanwhile the processes of the service are watched: none is started again, descriptors and memory stay.
It ends with 1 if a verdict was wrong, a process was replaced, memory or descriptors grew, or anything was left."""

import collections
import os
import pathlib
import random
import sys
import tempfile
import threading
import time

from service import TOP, Caller, Service

CLIENTS = 8
SAMPLE_S = 0.5
# What gloveboxd may grow by: DESIGN's slope, and what one sample differs from the next anyway.
SLOPE_BYTES, NOISE_BYTES = 1 << 20, 1 << 20
LONG = 50000  # runs: from here on the slope stands out from the noise, and is held alone
PARKED_DESCRIPTORS = 8  # of a sandbox that waits now and did not before; and of a connection that is kept
RESTING_NAMESPACES = 16  # RESTING_MAX of src/init/net_pool.c: empty ones that a fork server keeps
SETTLED = 1500  # runs: as many ended ones are remembered as ever will be

MiB = 1 << 20
OOM = "a = []\nwhile True: a.append(bytes(1 << 20))"
FORK = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
FLOOD = "import os\nwhile True: os.write(1, b'x' * 65536)"
CHATTY = "import os, sys\nprint({n}); sys.stdout.flush()\nos.execvp('yes', ['yes'])"
NETWORK = "import socket\ntry: socket.socket().connect(('10.0.0.1', 80))\nexcept OSError as e: print({n})"
TRACE = ("import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nprint({n}, l.ptrace(16, 1, 0, 0), l.mount(None, b'/', None, 4096, None),"
         " l.unshare(0x10000000))")
ORPHAN = "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: time.sleep(60)\n  os._exit(0)\nos.wait()\nprint({n})"
LITTER = "open('/tmp/a', 'w').write('x'); open('/dev/shm/b', 'w').write('y')\nimport os\nprint({n}, len(os.listdir('/tmp')))"
SMALL = {"memory_bytes": 40 * MiB}
FAST = {"wall_ms": 120}

# (how often, code, more of the request, status, limit, stdout; {n} is the run's own number)
PROGRAMS = [
    (60, "print({n})", {}, "ok", None, "{n}\n"),
    (10, "import json, sys\nprint(json.dumps({{'n': {n}}}), len(sys.stdin.read()))", {"stdin": "abc"}, "ok", None,
     '{{"n": {n}}} 3\n'),
    (8, "open('out.txt', 'w').write('{n}')\nprint({n})", {}, "ok", None, "{n}\n"),
    (8, "raise ValueError({n})", {}, "error", None, ""),
    (6, "print({n})\nraise SystemExit(3)", {}, "error", None, "{n}\n"),
    (5, "import pandas\nprint(pandas.Series([{n}, 1]).iloc[0])", {}, "ok", None, "{n}\n"),
    (4, "echo {n}", {"language": "bash"}, "ok", None, "{n}\n"),
    (4, "1 +", {}, "error", None, ""),
    (6, LITTER, {}, "ok", None, "{n} 1\n"),
    (6, NETWORK, {}, "ok", None, "{n}\n"),
    (5, TRACE, {}, "ok", None, "{n} -1 -1 -1\n"),
    (5, ORPHAN, {}, "ok", None, "{n}\n"),
    (3, "import os\nprint({n}, flush=True)\nos.kill(os.getpid(), 9)", {}, "error", None, "{n}\n"),
    (2, "print({n}, flush=True)\nwhile True: pass", {"limits": FAST}, "limit", "wall", "{n}\n"),
    (2, OOM, {"limits": SMALL}, "limit", "memory", ""),
    (1, FORK, {"limits": {"processes": 16} | FAST}, "limit", "wall", ""),
    (1, FLOOD, {"limits": {"output_bytes": 4096}}, "limit", "output", None),
    (1, CHATTY, {"limits": {"output_bytes": 4096}}, "limit", "output", None),
]


def read(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


class Watch:
    """The processes of one service that must stay what they are."""

    def __init__(self, serve):
        self.pids = {}
        for pid in read(f"/proc/{serve}/task/{serve}/children").split():
            name = read(f"/proc/{pid}/comm").strip()
            self.pids[name] = int(pid)
            if name.startswith("glovebox-spawne"):
                for number, holder in enumerate(read(f"/proc/{pid}/task/{pid}/children").split()):
                    self.pids[f"holder {number}"] = int(holder)
        self.zygotes = set()
        self.parked = [0, 0]  # sandboxes, before and after
        self.born = {pid: self.birth(pid) for pid in self.pids.values()}
        self.rss, self.descriptors = collections.defaultdict(list), collections.defaultdict(list)
        self.namespaces = {}  # of the network, which a fork server has open now

    @staticmethod
    def birth(pid):
        return read(f"/proc/{pid}/stat").rpartition(")")[2].split()[19:20]

    def look(self, runs):
        for name, pid in self.pids.items():
            pages = read(f"/proc/{pid}/statm").split()
            if pages:
                self.rss[name].append((runs, int(pages[1]) * os.sysconf("SC_PAGESIZE")))
            links = []
            for fd in os.listdir(f"/proc/{pid}/fd") if os.path.isdir(f"/proc/{pid}/fd") else []:
                try:
                    links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
                except OSError:
                    pass  # closed meanwhile
            if links:
                namespaces = sum(link.startswith("net:[") for link in links)
                self.descriptors[name].append((runs, len(links) - namespaces))
                self.namespaces[name] = namespaces

        for name, pid in self.pids.items():
            if name.startswith("holder"):
                self.zygotes |= {child for child in read(f"/proc/{pid}/task/{pid}/children").split()
                                 if read(f"/proc/{child}/comm") == "python3\n"}

    def rotation(self, runs):
        """Each zygote serves 2,000 forks (spawner/zygotes.c) and is replaced."""
        print(f"{len(self.zygotes)} zygotes served")
        return ["no zygote was ever replaced"] if runs > 8000 and len(self.zygotes) < 4 else []

    def replaced(self):
        return [f"{name} ({pid}) was replaced" for name, pid in self.pids.items() if self.birth(pid) != self.born[pid]]

    def growth(self):
        """Complaints about memory and descriptors, from when the service had settled."""
        found = []
        for name, points in self.rss.items():
            points = [point for point in points if point[0] >= SETTLED]
            if len(points) < 8:
                continue
            quarter = len(points) // 4
            first = sorted(size for _, size in points[:quarter])[quarter // 2]
            last = sorted(size for _, size in points[-quarter:])[quarter // 2]
            runs = points[-1][0] - points[0][0]
            slope = (last - first) * 100000 / max(runs, 1) / MiB
            print(f"{name}: {last / MiB:.1f} MiB resident, {(last - first) / 1024:+.0f} KiB in {runs} runs "
                  f"({slope:+.2f} MiB per 100,000)")
            noise = NOISE_BYTES if runs < LONG else 0
            if last - first > noise + SLOPE_BYTES * runs / 100000:
                found.append(f"{name} grew by {(last - first) / MiB:.2f} MiB in {runs} runs")
        for name, points in self.descriptors.items():
            idle = points[0][1], points[-1][1]  # both looked at when nothing ran
            print(f"{name}: {idle[0]} descriptors before, {idle[1]} after")
            if idle[1] > idle[0] + PARKED_DESCRIPTORS * (1 + max(0, self.parked[1] - self.parked[0])):
                found.append(f"{name} had {idle[0]} descriptors, and {idle[1]} in the end")
        for name, count in self.namespaces.items():
            if count > 1 + RESTING_NAMESPACES + self.parked[1]:
                found.append(f"{name} has {count} network namespaces in the end, with {self.parked[1]} sandboxes parked")
        return found


def problem_of(program, number, status, result):
    _, _, _, expected, limit, stdout = program
    if status != 200:
        return f"HTTP {status}"
    if result["status"] != expected or (limit and result["limit"]["name"] != limit):
        return f"{result['status']} {result['limit'] and result['limit']['name']} instead of {expected} {limit}"
    expects = None if stdout is None else stdout.format(n=number)
    # How far it came in its time depends on what else the machine does; nobody else's words are there.
    is_right = expects is None or (expects.startswith(result["stdout"]) if limit == "wall" else
                                   result["stdout"] == expects)
    if not is_right:
        return f"stdout {result['stdout']!r:.80} instead of {expects!r}"
    return None


class Soak:
    def __init__(self, path, runs, seconds):
        self.path, self.most, self.end = path, runs, time.monotonic() + seconds
        self.lock = threading.Lock()
        self.started = self.done = 0
        self.wrong, self.verdicts = [], collections.Counter()

    def parked(self):
        return Caller(self.path).call("GET", "/healthz")[1]["parked"]

    def client(self, seed):
        chance = random.Random(seed)
        caller = Caller(self.path)
        weights = [program[0] for program in PROGRAMS]
        while True:
            with self.lock:
                if self.started >= self.most or time.monotonic() > self.end or len(self.wrong) > 50:
                    return
                self.started += 1
                number = self.started
            program = chance.choices(PROGRAMS, weights)[0]
            try:
                status, result = caller.run(code=program[1].format(n=number), **program[2])
                problem = problem_of(program, number, status, result)
            except Exception as error:  # the service hung up: that is a finding, not the end of the soak
                problem, result = f"{type(error).__name__}: {error}", None
            with self.lock:
                self.done += 1
                self.verdicts[program[4] or program[3]] += 1
                if problem:
                    self.wrong.append((number, program[1], problem, result))


def settle(watch, runs):
    """The pool shrinks, one sandbox a second, to what it keeps when idle; then descriptors can be compared."""
    seen = []
    while len(seen) < 30 and (len(seen) < 4 or len(set(seen[-4:])) > 1):
        time.sleep(1)
        watch.look(runs)
        seen.append(sum(points[-1][1] for points in watch.descriptors.values()))


def groups_of(pids):
    """Folders of the control groups in which the holders stand: they go with the service."""
    found = set()
    for pid in pids:
        for line in read(f"/proc/{pid}/cgroup").splitlines():
            _, controllers, path = line.split(":", 2)
            for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
                folder = f"{root}/{controllers}{path}" if controllers else f"{root}{path}"
                if "glovebox" in path and os.path.isdir(folder):
                    found.add(folder)
    return found


def family(pid):
    found = [pid]
    for one in found:
        found += map(int, read(f"/proc/{one}/task/{one}/children").split())
    return {one: Watch.birth(one) for one in found}


def left_of(processes, groups):
    end = time.monotonic() + 10
    while True:
        left = [f"process {pid}" for pid, born in processes.items() if born and Watch.birth(pid) == born]
        left += [f"control group {group}" for group in groups if os.path.exists(group)]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.1)


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else f"{TOP}/build"
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 100000
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 86400
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="glovebox-soak-") as folder:
        with Service(build, folder, 32) as service:
            warm = Soak(service.socket, 40, 60)
            warm.client(0)
            watch = Watch(service.process.pid)
            soak = Soak(service.socket, runs, seconds)
            settle(watch, 0)
            watch.parked[0] = warm.parked()
            clients = [threading.Thread(target=soak.client, args=(seed,)) for seed in range(1, CLIENTS + 1)]
            for client in clients:
                client.start()
            while any(client.is_alive() for client in clients):
                time.sleep(SAMPLE_S)
                watch.look(soak.done)
            settle(watch, soak.done)
            watch.parked[1] = warm.parked()
            problems = watch.replaced() + watch.growth() + watch.rotation(soak.done)
            processes, groups = family(service.process.pid), groups_of(watch.pids.values())
        problems += [f"said: {line}" for line in read(f"{folder}/log").splitlines() if " pool." in line][:5]
        problems += [f"left: {item}" for item in left_of(processes, groups)]
        for number, code, problem, result in warm.wrong + soak.wrong[:20]:
            print(f"WRONG {number}: {problem}: {code!r:.200}\n      {str(result)[:700]}")
        if problems or soak.wrong:
            print(read(f"{folder}/log")[-3000:])
    took = time.monotonic() - begin
    print(", ".join(f"{count} {name}" for name, count in soak.verdicts.most_common()))
    for problem in problems:
        print(f"WRONG: {problem}")
    print(f"{soak.done - len(soak.wrong)} of {soak.done} answers were right, in {took:.0f} s")
    return 1 if warm.wrong or soak.wrong or problems or not soak.done else 0


if __name__ == "__main__":
    sys.exit(main())

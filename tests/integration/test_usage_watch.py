"""Memory and processes where no control group counts them: glovebox-init watches both (src/init/usage.c).

The daemon of these tests runs as an ordinary user without a delegated control group."""

import base64
import json
import os
import re
import subprocess

import pytest
import session_rig
from conftest import TOP, Glovebox

USER = ["setpriv", "--reuid", "4243", "--regid", "4243", "--clear-groups"]
MIB = 1 << 20
LIMIT = 300 * MIB

HEAP = """
blocks = []
for _ in range(60):
    blocks.append(bytearray(b"x" * (16 << 20)))
"""

MEMORY_BOMBS = {
    "bytearray": "held = bytearray(1500 << 20)",
    "heap": HEAP,
    "private_mapping": """
import mmap
held = []
for _ in range(40):
    held.append(mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    held[-1].write(b"x" * (32 << 20))
""",
    "shared_mapping": """
import mmap
held = []
for _ in range(40):
    held.append(mmap.mmap(-1, 32 << 20))
    held[-1].write(b"x" * (32 << 20))
""",
    "memfd": """
import os
for _ in range(20):
    file = os.memfd_create("held")
    for _ in range(60):
        os.write(file, b"x" * (1 << 20))
""",
    "files": """
for path in ("/dev/shm/held", "/tmp/held", "/workspace/held"):
    with open(path, "wb", buffering=0) as file:
        for _ in range(200):
            file.write(b"x" * (1 << 20))
""",
    "segments": """
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype, libc.shmat.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
libc.shmdt.argtypes = [ctypes.c_void_p]
for _ in range(30):
    at = libc.shmat(libc.shmget(0, 40 << 20, 0o1600), None, 0)
    ctypes.memset(at, 1, 40 << 20)
    libc.shmdt(at)
""",
    "stacks_and_heaps_of_threads": """
import threading, time
def hold():
    held = bytearray(30 << 20)
    time.sleep(20)
for _ in range(30):
    threading.Thread(target=hold).start()
""",
    "a_process_that_cannot_be_looked_at": """
import ctypes
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
held = bytearray(1200 << 20)
""",
    "many_processes": """
import os, sys, time
children = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        held = bytearray(40 << 20)
        time.sleep(20)
        os._exit(0)
    children.append(child)
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
""",
    "pages_written_after_a_fork": """
import os, sys, time
held = bytearray(120 << 20)
children = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        for at in range(0, len(held), 4096):
            held[at] = 1
        time.sleep(20)
        os._exit(0)
    children.append(child)
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
""",
    "a_program_of_its_own": """
import subprocess, sys
sys.exit(subprocess.run([sys.executable, "-c", "held = bytearray(1500 << 20)"]).returncode != 0)
""",
}

PROCESS_BOMBS = {
    "forks": """
import os, time
while True:
    if os.fork() == 0:
        time.sleep(20)
        os._exit(0)
""",
    "threads": """
import threading, time
for _ in range(500):
    threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
""",
}

# Their sums of resident memory are far above the limit: each counts what it shares with the others.
ORDINARY = {
    "workers_that_share_an_array": """
import os, time
held = bytearray(b"x" * (100 << 20))
children = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        for _ in range(3):
            len(held[:1 << 20])
            time.sleep(0.1)
        os._exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
""",
    "a_file_that_all_have_mapped": """
import mmap, os, time
with open("/dev/shm/held", "wb+") as file:
    file.truncate(120 << 20)
    held = mmap.mmap(file.fileno(), 120 << 20)
held.write(b"x" * (120 << 20))
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        sum(held[at] for at in range(0, len(held), 4096))
        time.sleep(0.3)
        os._exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
""",
    "memory_that_is_reserved_and_not_used": """
import mmap
print(len(mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)) >> 30)
""",
}


class OfUser:
    """The program as an ordinary user calls it; `folder` is his."""

    def __init__(self, glovebox, folder):
        if os.geteuid() != 0:
            pytest.skip("becoming somebody else needs root")
        self.glovebox, self.folder = glovebox, folder
        os.chown(folder, 4243, 4243)
        for above in [folder, *folder.parents]:
            if above.stat().st_mode & 0o111 != 0o111:
                above.chmod(above.stat().st_mode | 0o111)

    def environment(self, more=None):
        return self.glovebox.environment({"HOME": str(self.folder), "GLOVEBOX_RUNTIME": str(self.folder)} | (more or {}))

    def start(self, *arguments, env=None, **how):
        env = {"GLOVEBOX_POOL_MIN": "0"} | (env or {})
        return subprocess.Popen([*USER, self.glovebox.program, *arguments], cwd="/", env=self.environment(env), **how)

    def __call__(self, *arguments):
        return subprocess.run([*USER, self.glovebox.program, *arguments], capture_output=True, stdin=subprocess.DEVNULL,
                              cwd="/", env=self.environment(), timeout=60, check=False)


DELEGATED = "a control group is delegated to everybody here, and counts"


def skip_where_a_group_counts(user):
    """The result says it: what the program prints about it is what the tests are for."""
    done = user("run", "--private", "--json", "--policy", "minimal", "-c", "print(1)")
    if "cgroup_memory" not in json.loads(done.stdout)["isolation"]["degraded"]:
        pytest.skip(DELEGATED)


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policies")
    (folder / "watched.yaml").write_text("name: watched\nextends: data\nlimits: {memory: 300MiB, disk: 700MiB, wall: 60s}\n")
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def of_user(tmp_path_factory, policies):
    folder = tmp_path_factory.mktemp("u")
    user = OfUser(Glovebox(folder), folder)
    started = session_rig.Daemon(user, folder, policies=f"{policies}:{TOP / 'policies'}")
    status, told = started.call("POST", "/v1/runs", {"code": "1", "language": "python", "policy": "watched"})
    assert status == 200, told
    if "cgroup_memory" not in told["isolation"]["degraded"]:
        started.stop()
        pytest.skip(DELEGATED)
    yield started
    started.stop()


def run(daemon, code, **limits):
    status, result = daemon.call("POST", "/v1/runs", {"code": code, "language": "python", "policy": "watched"}
                                 | ({"limits": limits} if limits else {}))
    assert status == 200, result
    return result


@pytest.mark.parametrize("name", MEMORY_BOMBS)
def test_memory_ends_at_the_limit(of_user, name):
    result = run(of_user, MEMORY_BOMBS[name])
    limit = result["limit"]
    assert result["status"] == "limit" and limit["name"] == "memory", result
    assert limit["granted"] == LIMIT < limit["used"] == result["usage"]["memory_peak_bytes"], limit


@pytest.mark.parametrize("name", PROCESS_BOMBS)
def test_processes_end_at_the_limit(of_user, name):
    result = run(of_user, PROCESS_BOMBS[name], processes=24)
    assert result["status"] == "limit" and result["limit"]["name"] == "processes", result
    assert 24 <= result["limit"]["used"] <= 24 + 4, result["limit"]


@pytest.mark.parametrize("name", ORDINARY)
def test_shared_and_reserved_memory_is_no_alarm(of_user, name):
    result = run(of_user, ORDINARY[name])
    assert (result["status"], result["limit_hits"]) == ("ok", []), result
    assert result["stdout"] in ("[0, 0, 0, 0, 0, 0, 0, 0]\n", "[0, 0, 0, 0]\n", "4\n")


def test_pandas_below_the_limit_passes(of_user):
    result = run(of_user, "import numpy as np, pandas as pd\n"
                          "frame = pd.DataFrame({'a': np.arange(1_000_000), 'b': np.arange(1_000_000) % 7})\n"
                          "print(int(frame.groupby('b').a.sum().sum()))\n")
    assert result["stdout"] == "499999500000\n" and result["limit_hits"] == [], result
    assert 10 * MIB < result["usage"]["memory_peak_bytes"] < LIMIT


def test_inputs_are_not_the_programs_memory(of_user):
    """As with a control group: what gloveboxd has written before the program began is not counted."""
    files = [{"path": f"input-{n}", "content": "x" * (30 * MIB)} for n in range(2)]
    status, result = of_user.call("POST", "/v1/runs", {"code": "held = bytearray(60 << 20)", "language": "python",
                                                       "policy": "watched", "files": files,
                                                       "limits": {"memory_bytes": 110 * MIB}})
    assert status == 200 and result["status"] == "ok", result


def test_a_cell_ends_and_the_session_goes_on(of_user):
    session = of_user.session(policy="watched")
    assert session.value("6 * 7") == "42"
    ended = session.run(MEMORY_BOMBS["bytearray"])
    assert ended["status"] == "limit" and ended["limit"]["name"] == "memory", ended
    status, fresh = session.call("POST", "/contexts", {"language": "python"})
    assert status == 201, fresh
    after = session.run("6 * 7", context=fresh["id"])
    assert after["status"] == "ok" and after["limit_hits"] == [], "a later cell is not blamed for an earlier one"
    assert session.get()["usage"]["memory_peak_bytes"] > LIMIT
    session.end()


def test_a_thread_that_grows_between_cells_is_ended(of_user):
    session = of_user.session(policy="watched")
    session.run("import threading, time\n"
                "held = []\n"
                "def grow():\n"
                "    time.sleep(0.3)\n"
                "    while True:\n"
                "        held.append(bytearray(b'x' * (8 << 20)))\n"
                "threading.Thread(target=grow, daemon=True).start()\n")
    for _ in range(600):
        if session.get()["usage"]["memory_peak_bytes"] > LIMIT:
            break
        subprocess.run(["sleep", "0.05"], check=True)
    assert session.get()["usage"]["memory_peak_bytes"] > LIMIT
    session.end()


def test_a_branch_is_watched_as_well(of_user):
    session = of_user.session(policy="watched")
    session.run("kept = 5")
    status, answer = session.call("POST", "/branch", {})
    assert status == 201, answer
    branch = session_rig.Session(of_user, answer)
    assert branch.value("kept") == "5"
    ended = branch.run(MEMORY_BOMBS["heap"])
    assert ended["status"] == "limit" and ended["limit"]["name"] == "memory", ended
    assert session.value("kept") == "5"
    branch.end()
    session.end()


def test_a_missing_limit_is_reported_once_and_each_time_it_is_requested(tmp_path, glovebox):
    user = OfUser(glovebox, tmp_path)
    words = ("run", "--private", "--policy", "minimal", "-c", "print(1)")
    first, second, asked = user(*words), user(*words), user(*words[:-2], "--memory", "64MiB", *words[-2:])
    skip_where_a_group_counts(user)
    assert first.stdout == second.stdout == asked.stdout == b"1\n", first.stderr
    assert first.stderr.count(b"\n") == 1 and b"systemd-run --user --scope -p Delegate=yes" in first.stderr
    assert second.stderr == b"" and asked.stderr == first.stderr


def test_the_receipt_names_the_key_that_counted(tmp_path, glovebox):
    user = OfUser(glovebox, tmp_path)
    done = user("run", "--private", "--policy", "minimal", "--memory", "64MiB", "--receipt", str(tmp_path / "r"),
                "-c", "held = bytearray(200 << 20)")
    skip_where_a_group_counts(user)
    envelope = json.loads((tmp_path / "r").read_text())
    evidence = re.findall(r'\{[^{}]*"counter":"memory_kills"[^{}]*\}', base64.b64decode(envelope["payload"]).decode())
    assert len(evidence) == 1 and '"glovebox-init"' in evidence[0] and '"/proc"' in evidence[0], evidence


def test_short_cells_in_a_row_are_counted(of_user):
    """Each ends before the first look that it would have by itself; what they leave in anonymous files adds up."""
    session = of_user.session(policy="watched")
    session.run("import os\nfiles = []")
    for _ in range(200):
        ended = session.run("files.append(os.memfd_create('held'))\n_ = os.write(files[-1], b'x' * (4 << 20))")
        if ended["status"] != "ok":
            break
    assert ended["status"] in ("limit", "error"), "one of them hears it, or finds its context ended between two"
    assert LIMIT < session.get()["usage"]["memory_peak_bytes"] < LIMIT + 100 * MIB, ended
    session.end()

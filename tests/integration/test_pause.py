"""During a pause no program runs, whatever it has arranged to be woken by, and a frozen session ends as any other."""

import contextlib
import os
import pathlib
import shutil
import signal
import time

import pytest
import session_rig
from conftest import Glovebox

# Each writes the time, on the clock that the host has too, as often as it gets to it.
BEGIN = """
import ctypes, fcntl, os, signal, sys, threading, time
log = open('/workspace/ticks', 'ab', 0)
def tick(): log.write(b'%d\\n' % time.monotonic_ns())
def tick_on(every=0.02):
    while True: tick(); time.sleep(every)
libc = ctypes.CDLL(None)
class Event(ctypes.Structure):
    _fields_ = [('value', ctypes.c_size_t), ('signo', ctypes.c_int), ('how', ctypes.c_int), ('tid', ctypes.c_int), ('rest', ctypes.c_int * 11)]
def timer(signo=signal.SIGCONT, thread=0):
    made = ctypes.c_void_p()
    event = Event(signo=signo, how=4 if thread else 0, tid=thread)
    times = (ctypes.c_long * 4)(0, 50000000, 0, 50000000)
    assert libc.timer_create(1, ctypes.byref(event), ctypes.byref(made)) == 0
    assert libc.timer_settime(made, 0, times, None) == 0
"""
PROGRAMS = {
    "a timer that sends SIGCONT": "timer(); tick_on()",
    "a child that is woken and wakes its parent": (
        "parent = os.getpid()\n"
        "if os.fork() == 0:\n    timer()\n    while True: os.kill(parent, signal.SIGCONT); time.sleep(0.03)\n"
        "tick_on()"),
    "a signal of one's own choice when a pipe can be read": (
        "r, w = os.pipe()\nfcntl.fcntl(r, fcntl.F_SETOWN, os.getpid())\nfcntl.fcntl(r, 10, signal.SIGCONT)\n"
        "fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)\n"
        "if os.fork() == 0:\n    timer()\n    while True: os.write(w, b'1'); time.sleep(0.05)\n"
        "def read():\n    while True:\n        time.sleep(0.05)\n"
        "        try: os.read(r, 100)\n        except BlockingIOError: pass\n"
        "threading.Thread(target=read, daemon=True).start(); tick_on()"),
    "an alarm that sends SIGCONT to the group": (
        "signal.signal(signal.SIGALRM, lambda *_: os.kill(0, signal.SIGCONT))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05); timer(); tick_on()"),
    "many threads with a timer each": (
        "def one(): timer(thread=threading.get_native_id()); tick_on(0.2)\n"
        "for _ in range(20): threading.Thread(target=one, daemon=True).start()\ntick_on()"),
    "forks without end": (
        "timer()\nwhile True:\n    child = os.fork()\n    if child == 0: tick(); os._exit(0)\n"
        "    os.waitpid(child, 0); time.sleep(0.01)"),
}


@pytest.fixture
def session(daemon):
    made = daemon.session(template="minimal")
    yield made
    made.call("DELETE")


def start(session, program):
    session.run(f"import os; open('/workspace/program.py', 'w').write({BEGIN + program!r})")
    status, process = session.call("POST", "/processes", {"command": ["python3", "/workspace/program.py"]})
    assert status == 201, process
    until(lambda: len(ticks(session)) > 2)


def ticks(session):
    code = "print(open('/workspace/ticks').read() if os.path.exists('/workspace/ticks') else '')"
    return [int(line) for line in session.run(code)["stdout"].split()]


def until(true, seconds=30):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


def pids_of(mark):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def is_frozen(pid):
    """As the kernel says of its group; None: this machine has no freezer, or the process has ended."""
    lines = []
    with contextlib.suppress(OSError):
        lines = pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    for line in lines:
        _, kinds, path = line.split(":", 2)
        with contextlib.suppress(OSError):
            if kinds == "freezer" and path != "/":
                return pathlib.Path(f"/sys/fs/cgroup/freezer{path}/freezer.state").read_text() == "FROZEN\n"
            if kinds == "" and path != "/":
                return "frozen 1" in pathlib.Path(f"/sys/fs/cgroup{path}/cgroup.events").read_text()
    return None


@pytest.fixture
def sleeper(daemon):
    """A session that is paused, with a program in it that can be found from outside."""
    def make(using=daemon, **wishes):
        made = using.session(**({"template": "minimal"} | wishes))
        mark = f"{900000 + time.monotonic_ns() % 90000}"
        made.call("POST", "/processes", {"command": ["sleep", mark]})
        until(lambda: pids_of(mark.encode()))
        pid, = pids_of(mark.encode())
        assert made.call("POST", "/pause")[0] == 200
        if made.get()["held_by"] != "freezer":
            pytest.skip("this machine has no freezer")
        until(lambda: is_frozen(pid))
        return made, pid
    return make


def is_gone(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    return True


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_program_gets_on_in_a_pause(session, name):
    start(session, PROGRAMS[name])
    status, paused = session.call("POST", "/pause")
    assert status == 200, paused
    if paused["held_by"] != "freezer":
        pytest.skip("this machine has no freezer: what wakes is stopped again each second")
    def stands_still():  # one that forks may have ended before its group stood still
        return any(is_frozen(pid) for pid in pids_of(b"/workspace/program.py"))
    until(stands_still)
    begins = time.monotonic_ns()
    time.sleep(1.5)
    assert stands_still() and session.get()["state"] == "paused"
    ends = time.monotonic_ns()
    resumed = session.call("POST", "/resume")[1]
    assert (resumed["state"], resumed["held_by"]) == ("running", None)
    until(lambda: ticks(session)[-1] > ends)  # it goes on
    assert not [tick for tick in ticks(session) if begins < tick < ends]


def test_what_is_thawed_from_outside_is_frozen_again(sleeper):
    session, pid = sleeper()
    group = next(line.split(":", 2)[2] for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines()
                 if ":freezer:" in line or line.startswith("0::/glovebox"))
    for path, word in ((f"/sys/fs/cgroup/freezer{group}/freezer.state", "THAWED"), (f"/sys/fs/cgroup{group}/cgroup.freeze", "0")):
        with contextlib.suppress(OSError):
            pathlib.Path(path).write_text(word)
    until(lambda: session.get()["held_by"] == "signals" and is_frozen(pid))
    assert session.call("POST", "/resume")[0] == 200
    until(lambda: pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S")
    session.end()


def test_a_frozen_session_is_deleted(daemon, sleeper):
    session, pid = sleeper()
    assert session.end()["ended"]["why"] == "deleted"
    daemon.idle()
    assert is_gone(pid)


@pytest.fixture
def own(tmp_path):
    shutil.copytree(pathlib.Path(__file__).parents[2] / "policies", tmp_path / "policies")
    (tmp_path / "policies/brief.yaml").write_text("name: brief\nextends: data\ndescription: Short lives.\nsessions: {age: 8s}\n")
    started = session_rig.Daemon(Glovebox(tmp_path), tmp_path, policies=tmp_path / "policies")
    yield started
    started.process.send_signal(signal.SIGTERM)
    started.process.wait(30)


def test_a_frozen_session_expires(own, sleeper):
    session, pid = sleeper(own, policy="brief")
    until(lambda: session.get()["state"] == "ended")
    assert session.get()["ended"]["why"] == "expired"
    own.idle()
    assert is_gone(pid)


@pytest.mark.parametrize("program", ["gloveboxd", "glovebox-spawner", "glovebox-init"])
def test_a_frozen_session_ends_with_what_holds_it(own, sleeper, program):
    """init: that of the sandbox itself."""
    _, pid = sleeper(own)
    children = pathlib.Path(f"/proc/{own.process.pid}/task/{own.process.pid}/children").read_text().split()
    found = [int(child) for child in children if pathlib.Path(f"/proc/{child}/comm").read_text().startswith(program[:15])]
    if program == "glovebox-init":
        namespace = os.readlink(f"/proc/{pid}/ns/pid")
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and os.readlink(entry / "ns/pid") == namespace and \
                        "\t1\n" in next(line for line in (entry / "status").open() if line.startswith("NSpid")):
                    found.append(int(entry.name))
    os.kill(found[0], signal.SIGKILL)
    until(lambda: is_gone(pid))

"""What a program leaves running, or lets speak in its interpreter's place, has ended before its files are taken, and no
process of it outlives its sandbox. Each way writes one number after the other into each of its files: they differ by
more than one step only if it still wrote while they were taken."""

import contextlib
import io
import os
import pathlib
import time
import zipfile

import pytest
from zygote_rig import enum_of

FILES = 24
EXECUTED = enum_of("agent.h", "agent_kind")["AGENT_EXECUTED"]
NAME = f"left-{os.getpid()}"
PRELUDE = f"""
import atexit, ctypes, os, signal, struct, sys, threading, time
libc = ctypes.CDLL(None)
files = [os.open(f"/workspace/{{n:02}}", os.O_RDWR | os.O_CREAT, 0o644) for n in range({FILES})]
def step(count):
    for file in files:
        os.pwrite(file, b"%09d" % count, 0)
def go_on(count=0):
    libc.prctl(15, {NAME.encode()!r}, 0, 0, 0)
    while True:
        count += 1
        step(count)
def began(after=0):
    while int(os.pread(files[-1], 9, 0) or 0) <= after:
        time.sleep(0.0002)
def forge(code=0):
    control = max(fd for fd in range(64) if is_socket(fd))
    os.write(control, struct.pack("<IHHIIiiII", 16, {EXECUTED}, 0, 1, 0, code, 0, 1, 1))
def is_socket(fd):
    try:
        return os.readlink(f"/proc/self/fd/{{fd}}").startswith("socket:")
    except OSError:
        return False
def raw_clone(flags=17): # no hook of fork is called in the child: it keeps the socket of the interpreter
    return libc.syscall(56, flags, 0, 0, 0, 0)
"""
# In a process of its own, with nothing of the interpreter's.
ANEW = """
import ctypes, os
files = [os.open(f"/workspace/{n:02}", os.O_RDWR) for n in range(%d)]
ctypes.CDLL(None).prctl(15, %r, 0, 0, 0)
count = 0
while True:
    count += 1
    for file in files:
        os.pwrite(file, b"%%09d" %% count, 0)
""" % (FILES, NAME.encode())

WAYS = {
    "a child": "if os.fork() == 0: go_on()\nbegan()",
    "a daemon": "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: go_on()\n    os._exit(0)\nbegan()",
    "a child that no hook knows": "if raw_clone() == 0: go_on()\nbegan()",
    "a sibling": "if raw_clone(0x8000 | 17) == 0: go_on()\nbegan()",
    "a child that sends no signal at its end": "if raw_clone(0) == 0: go_on()\nbegan()",
    "another program": f"os.posix_spawn(sys.executable, ['python3', '-c', {ANEW!r}], os.environ)\nbegan()",
    "a thread": "threading.Thread(target=go_on, daemon=True).start()\nbegan()",
    "a child of a thread": "threading.Thread(target=lambda: os.fork() or go_on()).start()\nbegan()",
    "a thread of a child": "if os.fork() == 0:\n    threading.Thread(target=go_on).start()\n    signal.pause()\nbegan()",
    "a child of the exit": "atexit.register(lambda: os.fork() or go_on())\nstep(1)",
    "a child of the last object": "class Last:\n    def __del__(self, fork=os.fork, go_on=go_on): fork() or go_on()\nlast = Last()\nstep(1)",
    "a child that stands still": "if os.fork() == 0:\n    step(1)\n    os.kill(os.getpid(), signal.SIGSTOP)\nbegan()",
    "a child that ignores what it can": "if os.fork() == 0:\n    for n in range(1, 65):\n        try: signal.signal(n, signal.SIG_IGN)\n"
                                        "        except (OSError, ValueError): pass\n    go_on()\nbegan()",
    "children in a row": "if os.fork() == 0:\n    count = 0\n    while True:\n        count += 1\n        step(count)\n"
                         "        if os.fork(): os._exit(0)\nbegan(3)",
    "children that have ended": "for n in range(50):\n    if os.fork() == 0: os._exit(0)\n    os.wait()\nstep(1)",
    "nothing": "step(1)",
    "a forged end, and itself": "forge()\ngo_on()",
    "a forged end of a thread": "threading.Thread(target=lambda: (began(), forge())).start()\ngo_on()",
    "a forged end of a child": "if raw_clone() == 0:\n    began()\n    forge()\n    os._exit(0)\ngo_on()",
    "a forged end, and a child of later": "forge()\nif os.fork() == 0: go_on()\nsignal.pause()",
    "a forged end, and another program": f"step(1)\nforge()\nos.execv(sys.executable, ['python3', '-c', {ANEW!r}])",
    "two forged ends": "forge()\nforge()\ngo_on()",
    "a forged end that is none": "if os.fork() == 0: go_on()\nbegan()\nforge(1000)",
    "an id of its choice": "import errno\nids = (ctypes.c_int * 1)(3)\n"
                           "arguments = struct.pack('<11Q', 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(ids), 1, 0)[:80]\n"
                           "if libc.syscall(435, arguments, 80) == 0: go_on()\nstep(1)",
    "the last id set back": "try: open('/proc/sys/kernel/ns_last_pid', 'w').write('2')\nexcept OSError: pass\n"
                            "if os.fork() == 0: go_on()\nbegan()",
}


def alive():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == NAME:
                found.append(int(pid))
    return found


@pytest.mark.parametrize("way", WAYS)
def test_nothing_writes_when_files_are_taken(daemon, way):
    for _ in range(3):
        status, answer = daemon.call("POST", "/v1/runs", {"code": PRELUDE + WAYS[way], "limits": {"wall_ms": 5000}})
        assert status == 200 and answer["status"] in ("ok", "error"), answer
        archive = zipfile.ZipFile(io.BytesIO(daemon.open("GET", f"/v1/runs/{answer['id']}/artifacts.zip").read()))
        numbers = [int(archive.read(name) or 0) for name in sorted(archive.namelist())]
        assert len(numbers) == FILES, answer
        # one writer, which was ended between two of its files
        assert numbers == sorted(numbers, reverse=True) and numbers[0] - numbers[-1] <= 1, numbers
    end = time.monotonic() + 5
    while alive() and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive()

#!/usr/bin/env python3
"""packages.py - what the packages for Python and JavaScript cost: tests/bench/packages.py BUILD. Prints a line for each bound, and
fails above one. For a machine without other work; httpx comes from PyPI, once, into BUILD/bench-venv."""

import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
SOURCE = TOP / "packages/python/src"
BUILD = pathlib.Path(sys.argv[1]).resolve()
STATE = pathlib.Path(os.environ.get("GLOVEBOX_STATE", BUILD / "state")).resolve()
PACKAGES = 150

FIRST_RESULT = """
import sys, time, glovebox
times = []
for _ in range(120):
    began = time.perf_counter()
    with glovebox.Sandbox(socket=sys.argv[1], policy="minimal") as sandbox:
        assert sandbox.run_code("6 * 7").text == "42"
        times.append(time.perf_counter() - began)
print(sorted(times[20:])[50] * 1e3)
"""
THIS_ENVIRONMENT = """
import time, glovebox, glovebox.server
glovebox.server.IDLE_SECONDS = 20
began = time.perf_counter()
with glovebox.Sandbox(template="this-environment") as sandbox:
    execution = sandbox.run_code("import package_149; package_149.VALUE")
    took = time.perf_counter() - began
assert execution.text == "149", execution
print(took * 1e3)
"""
BARE = """
import json, socket
body = json.dumps({"code": "print(1)", "policy": "minimal", "mode": "cell"}).encode()
request = (b"POST /v1/runs HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n"
           % len(body)) + body
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
def bare():
    peer.sendall(request)
    head, _, answer = peer.recv(16384).partition(b"\\r\\n\\r\\n")
    size = int(head.lower().partition(b"content-length:")[2].split(b"\\r\\n", 1)[0])
    while len(answer) < size:
        answer += peer.recv(16384)
    return json.loads(answer)["stdout"]
"""
PACKAGE = "glovebox.run('print(1)', socket=sys.argv[1], policy='minimal').stdout"
CALLS = """
import sys, time, glovebox
{set_up}
for i in range(1500):
    if i == 500:
        began = time.process_time()
    assert {call} == "1\\n"
print((time.process_time() - began) * 1e3)
"""
failed = []


def tell(what, value, limit, unit):
    failed.append(value > limit)
    print(f"{'not ok' if failed[-1] else 'ok'} - {what}: {value:.1f} {unit} (at most {limit})", flush=True)


def said_by(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def processor_time(python, code):
    before = os.times()
    said_by(python, "-c", code, env={"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin"})
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def of_import(scratch):
    venv = BUILD / "bench-venv"
    if not (venv / "complete").exists():
        said_by("python3", "-m", "venv", "--clear", venv)
        said_by(venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "httpx")
        (venv / "complete").touch()
    rounds = [[processor_time(venv / "bin/python", code) for code in ("pass", "import glovebox", "import httpx")] for _ in range(40)]
    start, ours, theirs = (statistics.mean(sorted(column)[:20]) for column in zip(*rounds))
    tell("import glovebox, of the processor time of import httpx", 100 * (ours - start) / (theirs - start), 25, "%")


def of_calls(scratch):
    with served(scratch) as socket:
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        for line in said_by(sys.executable, TOP / "tests/bench/client.py", socket, "1500").splitlines():
            print(f"# {line}")
        costs = [[float(said_by(sys.executable, "-c", CALLS.format(set_up=set_up, call=call), socket, env=environment))
                  for set_up, call in ((BARE, "bare()"), ("", PACKAGE))] for _ in range(3)]
        bare, package = (statistics.median(column) for column in zip(*costs))
        print(f"# processor time of the client: bare socket {bare:.0f} us, run('print(1)') {package:.0f} us")
        tell("run('print(1)'), processor time above that of a bare socket (decision 155)", package - bare, 126, "us")
        tell("Sandbox() to its first result, p50", float(said_by(sys.executable, "-c", FIRST_RESULT, socket, env=environment)), 6, "ms")
        if shutil.which("node") and (TOP / "packages/javascript/dist/esm/index.js").exists():
            found = json.loads(said_by("node", TOP / "tests/bench/packages.mjs", socket))
            print(f"# node:http {found['bare']:.2f} ms, package {found['package']:.2f} ms")
            tell("JavaScript, over a call of node:http, p50", found["added"], 1, "ms")


@contextlib.contextmanager
def served(scratch):
    socket = f"{scratch}/socket"
    process = subprocess.Popen([BUILD / "glovebox", "serve", "--socket", socket, "--log-level", "warning"],
                               env={**os.environ, "GLOVEBOX_STATE": f"{scratch}/state", "GLOVEBOX_RUNTIME": f"{scratch}/run",
                                    "GLOVEBOX_MEASURE_TEMPLATES": "false"})
    try:
        end = time.monotonic() + 60
        while not os.path.exists(socket):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        time.sleep(3)  # its pools fill
        yield socket
    finally:
        process.terminate()
        process.wait(60)


def make_environment(venv):
    said_by(sys.executable, "-m", "venv", "--without-pip", venv)
    site = next((venv / "lib").glob("python3*/site-packages"))
    for number in range(PACKAGES):
        name = f"package_{number:03}"
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(f"VALUE = {number}\n")
        for module in range(20):
            (site / name / f"module_{module}.py").write_text(f"def function():\n    return {module}\n" * 20)
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "RECORD").write_text("")


def of_this_environment(scratch):
    venv = pathlib.Path(scratch) / "home/venv"
    make_environment(venv)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(venv.parent), "XDG_RUNTIME_DIR": f"{scratch}/run", "PYTHONPATH": str(SOURCE),
                   "GLOVEBOX_STATE": f"{scratch}/state", "GLOVEBOX_PROGRAM": str(BUILD / "glovebox")}
    times = [float(said_by(venv / "bin/python", "-c", THIS_ENVIRONMENT, env=environment, cwd=scratch)) for _ in range(10)]
    print(f"# the first start, which copies {PACKAGES} packages: {times[0] / 1e3:.1f} s")
    tell(f"this-environment of {PACKAGES} packages, a later start to its first result, p50", statistics.median(times[1:]), 50, "ms")
    end = time.monotonic() + 120
    while list(pathlib.Path(scratch, "run/glovebox-private").glob("socket*")) and time.monotonic() < end:
        time.sleep(0.2)  # the private server ends when it is idle


scratch = tempfile.mkdtemp(prefix="glovebox-bench-")
os.chmod(scratch, 0o711)
try:
    for name in ("state", "run", "home"):
        os.mkdir(f"{scratch}/{name}", 0o700 if name == "run" else 0o755)
    os.symlink(STATE / "templates", f"{scratch}/state/templates")
    for step in (of_import, of_calls, of_this_environment):
        step(scratch)
finally:
    shutil.rmtree(scratch, ignore_errors=True)
sys.exit(any(failed))

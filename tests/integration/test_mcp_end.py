"""At the end of input of `glovebox mcp`, everything that the process has begun, inside and outside of sandboxes, ends
within 2 s."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

import pytest
from conftest import Glovebox
from serving import Serving, state_of_its_own
from test_mcp import HELLO, wait_for

pytestmark = pytest.mark.usefixtures("python_template")

WITHIN_S = 2

# A host: starts the server, opens a session with a process that goes on in it, and calls what takes long. Its first
# line of output is what it began; then it waits, for a line to end the input by, or to be killed.
HOST = """
import json, subprocess, sys
words, hello, mark = json.loads(sys.argv[1])
server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def send(id_, method, params):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode() + b"\\n")
    server.stdin.flush()
def ask(*message):
    send(*message)
    return json.loads(server.stdout.readline())["result"]
def call(name, **arguments):
    return {"name": name, "arguments": arguments}
ask(1, "initialize", hello)
session = ask(2, "tools/call", call("session_open", policy="minimal"))["structuredContent"]["id"]
behind = f"import subprocess; subprocess.Popen(['sh', '-c', 'setsid sh -c \\"sleep 500; : {mark}\\" & sleep 501; : {mark}'], start_new_session=True)"
assert not ask(3, "tools/call", call("run_code", code=behind, session_id=session))["isError"]
mine = f"import subprocess; subprocess.Popen(['sh', '-c', 'sleep 502; : {mark}'])"
assert not ask(4, "tools/call", call("run_code", code=mine, session="mine", policy="minimal"))["isError"]
send(5, "tools/call", call("run_command", command=f"sh -c 'sleep 503; : {mark}'; : {mark}", policy="minimal"))
print(json.dumps({"server": server.pid, "session": session}), flush=True)
sys.stdin.readline()
server.stdin.close()
server.wait()
"""


def processes():
    """Of this machine: id -> (parent, when it began, command)."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        try:
            after = (folder / "stat").read_text().rpartition(")")[2].split()
            if folder.name.isdigit() and after[0] != "Z":
                found[int(folder.name)] = (int(after[1]), int(after[19]), (folder / "cmdline").read_text(errors="replace"))
        except OSError:
            pass
    return found


def began_by(server, mark):
    """Processes of the server, of its daemon if it has one, and of the sandboxes: as (id, when it began)."""
    all_, ours = processes(), {server}
    for _ in all_:
        more = {pid for pid, (parent, _, command) in all_.items() if parent in ours or mark in command.replace("\0", " ")} - ours
        if not more:
            break
        ours |= more
    return {(pid, all_[pid][1]) for pid in ours if pid in all_}


def alive(before):
    now = processes()
    return {pid: now[pid][2] for pid, when in before if pid in now and now[pid][1] == when}


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("mcp-end"))
    state_of_its_own(glovebox)
    with Serving(glovebox) as serving:
        yield serving


@pytest.mark.parametrize("how", ["input", "kill"])
@pytest.mark.parametrize("daemon", ["shared", "private"])
def test_nothing_outlives_the_host(service, daemon, how):
    mark = f"mark-{uuid.uuid4().hex}"
    words = [service.glovebox.program, "mcp", *(["--private"] if daemon == "private" else ["--socket", service.socket])]
    host = subprocess.Popen([sys.executable, "-c", HOST, json.dumps([words, HELLO, mark])], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            env=service.glovebox.environment())
    told = json.loads(host.stdout.readline())
    wait_for(lambda: sum(mark in command for _, _, command in processes().values()) >= 6)  # the host's own is one
    before = began_by(told["server"], mark) - {(host.pid, processes()[host.pid][1])}
    assert len(before) >= 6, alive(before)
    if how == "kill":
        os.kill(host.pid, signal.SIGKILL)
    else:
        host.stdin.write(b"\n")
        host.stdin.flush()
    began = time.monotonic()
    while alive(before) and time.monotonic() - began < 20:
        time.sleep(0.01)
    took = time.monotonic() - began
    print(f"{daemon} {how}: {len(before)} processes have ended after {took:.2f} s")
    assert not alive(before) and took < WITHIN_S, (took, alive(before))
    host.wait(20)
    if daemon == "shared":
        assert service.call("GET", f"/v1/sessions/{told['session']}").json["state"] == "ended"
        assert not [one for one in service.call("GET", "/v1/sessions").json["sessions"] if one["state"] != "ended"]
        assert not service.call("GET", "/v1/runs?status=running").json["runs"]

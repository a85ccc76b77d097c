"""The log of a service whose stderr is not read: callers are still served, and lost log lines are counted."""

import fcntl
import http.client
import json
import os
import re
import socket
import subprocess
import time

import pytest
from conftest import Glovebox
from serving import state_of_its_own

RUN = {"policy": "minimal", "language": "bash", "code": ":"}
RUNS, LOOKS_MOST = 20, 3000


def call(path, method, target, body=None):
    connection = http.client.HTTPConnection("localhost", timeout=30)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(30)
    connection.sock.connect(str(path))
    connection.request(method, target, body and json.dumps(body))
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def wait_until_served(path, process):
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            if call(path, "GET", "/healthz")[0] == 200:
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("it does not serve")


def dropped_lines(path):
    return int(re.search(r"\nglovebox_log_dropped_lines_total (\d+)\n", call(path, "GET", "/metrics")[1])[1])


def read_until_told(path, end):
    """All that is said, up to the line that says what was dropped: it comes with the next event for which there is room."""
    said, limit = b"", time.monotonic() + 30
    while time.monotonic() < limit and not re.search(rb"warning log\.dropped lines=\d+\n", said):
        try:
            said += os.read(end, 1 << 16)
        except BlockingIOError:
            call(path, "GET", "/healthz")
    return said


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_log_that_is_not_read(tmp_path, python_template, kind):
    glovebox = Glovebox(tmp_path)
    state_of_its_own(glovebox)
    if kind == "pipe":
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    else:
        reader, writer = (end.detach() for end in socket.socketpair())
    os.set_blocking(reader, False)
    path = tmp_path / "s"
    process = glovebox.start("serve", "--socket", path, "--slots", "8", "--log-level", "debug", stdout=subprocess.DEVNULL,
                             stderr=writer, stdin=subprocess.DEVNULL)
    os.close(writer)
    try:
        wait_until_served(path, process)
        for _ in range(RUNS):  # each says several lines
            status, answer = call(path, "POST", "/v1/runs", RUN)
            assert status == 200 and json.loads(answer)["status"] == "ok", answer
        for _ in range(LOOKS_MOST):
            if dropped_lines(path) > 0:
                break
        assert dropped_lines(path) > 0
        said = read_until_told(path, reader)
        assert re.search(rb"warning log\.dropped lines=\d+\n", said), said[-2000:]
        for line in said[:said.rindex(b"\n")].splitlines():  # whole lines, whatever was dropped between them
            assert re.match(rb"\d{4}-\d\d-\d\dT|glovebox", line), line
    finally:
        process.terminate()
        process.wait(60)
        os.close(reader)

"""Clients of the Model Context Protocol that open sessions and are never heard of again: nothing of them is left after
the idle time but what gloveboxd knows of the last 1,000 sessions (TOMBSTONES_MAX, some 14 KiB each). VANISHED says how many;
`make test` takes few."""

import os
import pathlib
import signal
import time

import pytest
from conftest import Glovebox
from mcp_client import Bridge, Handshake, Stateless
from serving import Serving, state_of_its_own
from test_mcp import HELLO, wait_for

pytestmark = pytest.mark.usefixtures("python_template")

COUNT = int(os.environ.get("VANISHED", "24"))
IDLE_S = 1
KNOWN, KNOWN_KIB = 1000, 16  # sessions that have ended


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("mcp-vanished"))
    state_of_its_own(glovebox)
    with Serving(glovebox, slots=16) as serving:
        yield serving


def look(service):
    """Descriptors of the programs, and their memory in KiB."""
    programs = [service.process.pid, *service.children().values()]
    descriptors = sum(len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir())) for pid in programs)
    status = pathlib.Path(f"/proc/{service.children()['gloveboxd']}/status").read_text()
    return descriptors, next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def alive(service):
    return [session for session in service.call("GET", "/v1/sessions").json["sessions"] if session["state"] != "ended"]


def open_one(service, number, key):
    """True: a session of a client that is not heard of again."""
    arguments = {"idle_seconds": IDLE_S, "policy": "minimal"}
    if number % 8 == 0:
        bridge = Bridge(service.glovebox, "--socket", service.socket)
        bridge.ask(1, "initialize", HELLO)
        opened = bridge.ask(2, "tools/call", {"name": "session_open", "arguments": {"policy": "minimal"}})["result"]
        os.kill(bridge.process.pid, signal.SIGKILL)
        bridge.process.wait(20)
        for stream in (bridge.process.stdin, bridge.process.stdout, bridge.process.stderr):
            stream.close()
    else:
        client = Handshake(service, key) if number % 2 else Stateless(service, key)
        opened = client.tool("session_open", **arguments)
    return not opened["isError"]


def test_sessions_of_clients_that_vanish_leave_nothing(service):
    key = service.key("--scope", "run,sessions")

    def open_many(count):
        opened, deadline = 0, time.monotonic() + 60 + count
        while opened < count and time.monotonic() < deadline:
            opened += open_one(service, opened, key)
        assert opened == count
        wait_for(lambda: not alive(service))

    open_many(8)
    time.sleep(2)  # what is parked is parked again
    before = look(service)
    open_many(COUNT)
    time.sleep(2)
    descriptors, memory = look(service)
    assert descriptors <= before[0] + 16, (before, descriptors)
    assert memory <= before[1] + 2048 + KNOWN_KIB * min(COUNT, KNOWN), (before, memory)
    if COUNT >= KNOWN:
        open_many(KNOWN // 2)
        time.sleep(2)
        descriptors, later = look(service)
        assert descriptors <= before[0] + 16, (before, descriptors)
        assert later <= memory + 1024, (memory, later)

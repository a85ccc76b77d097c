"""Subscriptions of the Model Context Protocol: many can be open, cost little memory, and get notifications of
changes."""

import contextlib
import json
import pathlib
import resource
import socket
import statistics
import time

import pytest
from conftest import Glovebox
from mcp_client import META, Stateless
from serving import Serving, state_of_its_own, with_policies
from test_mcp import read_event

pytestmark = [pytest.mark.usefixtures("python_template"), pytest.mark.alone]  # a thousand connections

MANY, BUSY = 1000, 512


@pytest.fixture(autouse=True, scope="module")
def many_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("mcp-subscriptions"))
    state_of_its_own(glovebox)
    with Serving(glovebox, env=with_policies(glovebox, {"mine": "description: first"})) as serving:
        yield serving


def memory_of(service):
    status = pathlib.Path(f"/proc/{service.children()['gloveboxd']}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def subscribe(service, client, number, **notifications):
    """An open stream that was acknowledged, and how long that took in ms."""
    message = client.message("subscriptions/listen", {"notifications": notifications})
    message["id"] = f"listen:{number}"
    body = json.dumps(message).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in client.headers(message).items())
    key = f"Authorization: Bearer {client.key['key']}\r\n" if client.key else ""
    if client.key:
        peer = socket.create_connection(("127.0.0.1", service.port), timeout=60)
    else:
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(60)
        peer.connect(service.socket)
    began = time.perf_counter()
    peer.sendall(f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{head}{key}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    got = b""
    while b"acknowledged" not in got:
        more = peer.recv(65536)
        assert more, got
        got += more
    assert json.dumps(message["id"]).encode() in got.replace(b" ", b"")
    return peer, (time.perf_counter() - began) * 1000


def test_a_thousand_subscriptions_cost_little_and_delay_no_request(service):
    client = Stateless(service, service.key("--scope", "run,sessions"))
    other = Stateless(service, service.key("--scope", "run"))
    with contextlib.ExitStack() as open_ones:
        def more(count):
            took = []
            for number in range(count):
                peer, ms = subscribe(service, client, number, toolsListChanged=True)
                open_ones.enter_context(peer)
                took.append(ms)
            return took

        assert other.tool("run_code", code="print(1)", policy="minimal")["structuredContent"]["stdout"] == "1\n"
        more(10)
        before = memory_of(service)
        took = more(MANY)
        assert (memory_of(service) - before) / MANY <= 16, "KiB each"
        assert statistics.median(took) < 50, took
        for caller in (client, other):  # its own tenant is served too: they are no requests under way
            assert caller.tool("run_code", code="print(1)", policy="minimal")["structuredContent"]["stdout"] == "1\n"
        idle = [open_ones.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=60)) for _ in range(BUSY // 2)]
        assert len(other.ask("tools/list")["result"]["tools"]) >= 3 and len(idle) == BUSY // 2


def test_a_client_is_notified_of_changed_tools(service):
    client = Stateless(service)
    message = client.message("subscriptions/listen", {"notifications": {"toolsListChanged": True, "promptsListChanged": True}})
    hears = service.open("POST", "/mcp", message, headers=client.headers(message))
    deaf = client.message("subscriptions/listen", {"notifications": {"resourcesListChanged": True}})
    silent = service.open("POST", "/mcp", deaf, headers=client.headers(deaf))
    assert read_event(hears)["params"]["notifications"] == {"toolsListChanged": True}
    assert read_event(silent)["params"]["notifications"] == {}
    (service.glovebox.folder / "policies" / "mine.yaml").write_text("name: mine\nextends: minimal\ndescription: second\n")
    assert "mine changed" in service.reload()
    told = read_event(hears)
    assert told["method"] == "notifications/tools/list_changed" and told["params"]["_meta"] == {META + "subscriptionId": message["id"]}
    silent.fp.raw._sock.settimeout(1)  # pylint: disable=protected-access
    with contextlib.suppress(TimeoutError):
        assert b"data" not in silent.readline(), "it has asked for nothing that there is"
    hears.close()
    silent.close()


def test_task_notifications_go_to_clients_that_declare_tasks(service):
    client = Stateless(service)
    message = client.message("subscriptions/listen", {"notifications": {"taskIds": ["run_1"]}})
    answer = client.post(message)
    assert answer.status == 400 and answer.json["error"]["code"] == -32021
    knows = Stateless(service, capabilities={"extensions": {META + "tasks": {}}})
    message = knows.message("subscriptions/listen", {"notifications": {"taskIds": ["run_1"]}})
    stream = service.open("POST", "/mcp", message, headers=knows.headers(message))
    assert read_event(stream)["params"]["notifications"] == {}
    stream.close()

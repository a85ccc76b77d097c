"""Open streams of events, subscriptions and upgraded connections of a key end within ten seconds after the key was
revoked or has expired. Those of other keys stay open."""

import contextlib
import json
import socket
import time

import pytest
from conftest import Glovebox
from mcp_client import Stateless
from serving import Serving, state_of_its_own
from test_mcp_subscriptions import subscribe

pytestmark = pytest.mark.usefixtures("python_template")

ECHO = """import socket
server = socket.create_server(("127.0.0.1", 9090))
print("up", flush=True)
peer = server.accept()[0]
while data := peer.recv(100): peer.sendall(data)"""


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("revoked-keys"))
    state_of_its_own(glovebox)
    with Serving(glovebox) as serving:
        yield serving


def ends_within(peer, seconds):
    peer.settimeout(seconds)
    with contextlib.suppress(TimeoutError):
        while peer.recv(65536):
            pass
        return True
    return False


def test_streams_of_a_revoked_or_expired_key_end_and_others_stay(service):
    revoked, stays = (service.key("--scope", "run,sessions") for _ in range(2))
    expires = service.key("--scope", "run,sessions", "--expires", "5s")
    streams = [subscribe(service, Stateless(service, key), number)[0] for number, key in enumerate((revoked, expires, stays))]
    body = json.dumps({"code": "import time\nfor n in range(60): print(n, flush=True); time.sleep(0.5)", "policy": "minimal"})
    run = socket.create_connection(("127.0.0.1", service.port), timeout=60)
    run.sendall(f"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAuthorization: Bearer {revoked['key']}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    assert b"200" in run.recv(65536)
    assert service.glovebox("key", "revoke", revoked["id"]).returncode == 0
    assert ends_within(streams[0], 20) and ends_within(streams[1], 20) and ends_within(run, 20)
    assert not ends_within(streams[2], 1), "its key is good"
    for stream in (*streams, run):
        stream.close()


def upgraded(service, key, place):
    peer = socket.create_connection(("127.0.0.1", service.port), timeout=60)
    peer.sendall(f"GET {place}/ports/9090/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key['key']}\r\n"
                 "Connection: Upgrade\r\nUpgrade: raw\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        more = peer.recv(1)
        assert more, head
        head += more
    assert head.startswith(b"HTTP/1.1 101"), head
    peer.sendall(b"hello")
    assert peer.recv(100) == b"hello"
    return peer


def test_connections_to_ports_end_with_their_key(service):
    revoked, stays = (service.key("--scope", "run,sessions") for _ in range(2))
    peers = []
    for key in (revoked, stays):
        made = service.call("POST", "/v1/sessions", {"policy": "server"}, key=key)
        assert made.status == 201, made.body
        place = f"/v1/sessions/{made.json['id']}"
        started = service.call("POST", place + "/processes", {"command": ["python3", "-c", ECHO]}, key=key)
        assert started.status == 201, started.body
        while service.call("GET", f"{place}/processes/{started.json['id']}", key=key).json["end_offset"] == 0:
            time.sleep(0.02)
        peers.append(upgraded(service, key, place))
    assert service.glovebox("key", "revoke", revoked["id"]).returncode == 0
    assert ends_within(peers[0], 20)
    peers[1].settimeout(20)
    peers[1].sendall(b"still here")
    assert peers[1].recv(100) == b"still here"
    for peer in peers:
        peer.close()

"""The network of a session: the rules of its policy apply for its whole life, and each cell reports the traffic while
it ran."""

import ast
import base64
import json
import os
import signal
import threading
import time

import pytest

from internet import Web
from session_rig import Session
from test_network import egress_of, world  # noqa: F401  (a fixture)

# To the end of the stream, not of the answer: only then is the connection over, and told, before the cell is.
FETCH = r'''
import socket, urllib.request
with socket.create_connection(("api.example.org", 80), 20) as peer:
    peer.sendall(b"GET {} HTTP/1.1\r\nHost: api.example.org\r\nConnection: close\r\n\r\n")
    said = b"".join(iter(lambda: peer.recv(65536), b""))
print(said.split()[1].decode())
'''


class Place:
    """What session_rig asks of a daemon."""

    def __init__(self, served):
        self.served = served

    def call(self, method, path, body=None):
        status, text = self.served.call(method, path, b"" if body is None else json.dumps(body).encode())
        return status, json.loads(text or "null")


@pytest.fixture
def begin(world):
    begun = []

    def begin(**request):
        status, answer = Place(world).call("POST", "/v1/sessions", {"policy": "web"} | request)
        assert status == 201, answer
        begun.append(Session(Place(world), answer))
        return begun[-1]
    yield begin
    for session in begun:
        session.end()


def targets(result):
    return [(connection["host"], connection["port"], connection["decision"]) for connection in result["network"]]


def test_each_cell_lists_its_own_connections(begin):
    session = begin()
    first = session.run(FETCH.format("/a"))
    assert first["stdout"] == "200\n" and targets(first) == [("api.example.org", 80, "allow")], first
    assert first["network"][0]["path"] == "/a" and first["denials"] == []
    quiet = session.run("1 + 1")
    assert quiet["network"] == [] and quiet["denials"] == []
    refused = session.run("try: urllib.request.urlopen('http://evil.example.org/')\nexcept OSError as e: print(e.code)")
    assert refused["stdout"] == "403\n" and targets(refused) == [("evil.example.org", 80, "deny")], refused
    assert [denial["target"] for denial in refused["denials"]] == ["evil.example.org:80"]
    again = session.run(FETCH.format("/b"))
    assert [connection["path"] for connection in again["network"]] == ["/b"] and again["denials"] == []


def test_a_branch_and_the_way_back_have_a_way_of_their_own(begin):
    session = begin()
    session.run("x = 'kept'\n" + FETCH.format("/before"))
    checkpoint = session.call("POST", "/checkpoints", {})[1]["id"]
    answer = session.call("POST", "/branch", {})[1]
    branch = Session(session.daemon, answer)
    try:
        assert branch.value("x") == "'kept'"
        told = branch.run(FETCH.format("/branch"))
        assert told["stdout"] == "200\n" and [row["path"] for row in told["network"]] == ["/branch"], told
    finally:
        branch.end()
    assert session.call("POST", f"/checkpoints/{checkpoint}/rollback")[0] == 200
    told = session.run(FETCH.format("/after"))
    assert told["stdout"] == "200\n" and [row["path"] for row in told["network"]] == ["/after"], told
    assert session.value("x") == "'kept'"


def test_a_compared_cell_lists_its_connections_too(begin):
    session = begin(network={"allow": [{"host": "api.example.org", "ports": [80]}]})
    told = session.run(FETCH.format("/compared"), expect={"stdout": {"schema": {"const": 200}}})
    assert told["gate"]["verdict"] == "passed" and targets(told) == [("api.example.org", 80, "allow")], told


def test_cells_and_programs_have_the_same_network(begin):
    session = begin()
    code = ("exec 3<>/dev/tcp/api.example.org/80; printf 'GET /x HTTP/1.1\\r\\nHost: api.example.org\\r\\n\\r\\n' >&3; head -c 12 <&3;"
            " echo; (exec 4<>/dev/tcp/evil.example.org/80) 2>/dev/null || echo refused")
    result = session.run(code, "bash")
    assert result["stdout"] == "HTTP/1.1 200\nrefused\n", result
    status, process = session.call("POST", "/processes", {"shell": "echo $HTTP_PROXY; " + code})
    assert status in (200, 201), process
    for _ in range(200):
        shown = session.call("GET", f"/processes/{process['id']}")[1]
        if shown["state"] != "running":
            break
        time.sleep(0.02)
    told = session.run("1")  # nothing ran when it passed: the next cell tells it
    assert ("api.example.org", 80, "allow") in targets(told), told
    assert ("evil.example.org", 53, "deny") in targets(told), told


def test_two_contexts_at_once_are_both_reported(begin):
    session = begin()
    slow = session.run  # python waits while bash connects
    status, context = session.call("POST", "/contexts", {"language": "python"})
    assert status in (200, 201), context
    import threading
    results = {}
    code = "import time\ntime.sleep(0.4)\n"
    threads = [threading.Thread(target=lambda name=name: results.update({name: slow(code + FETCH.format("/" + name), name)}))
               for name in ("python", context["id"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, result in results.items():
        assert result["stdout"] == "200\n" and "/" + name in [one["path"] for one in result["network"]], results


def test_neighbours_share_neither_names_nor_connections(begin):
    one, other = begin(), begin()
    assert one.run(FETCH.format("/one"))["stdout"] == "200\n"
    code = ("import socket\ntry:\n  s = socket.create_connection(('198.18.0.1', 80), 5)\n  s.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n')\n"
            "  print(s.recv(12))\nexcept OSError as e: print(type(e).__name__)")
    result = other.run(code)
    assert b"200" not in result["stdout"].encode() and all(one["decision"] == "deny" for one in result["network"]), result
    assert one.run("1")["network"] == []


def test_bytes_are_counted_for_its_whole_life(begin):
    session = begin()
    flood = ("import socket\ndef flood():\n  s = socket.create_connection(('raw.example.org', 5432), 5)\n  sent = 0\n  try:\n"
             "    while True: sent += s.send(bytes(65536))\n  except OSError: pass\n  s.close()\n")
    first = session.run(flood + "flood()")
    assert [connection["sent"] for connection in first["network"]] == [1 << 20], first
    second = session.run("flood()")
    assert sum(connection["sent"] for connection in second["network"]) == 0, second


def test_bytes_are_counted_over_a_way_back_and_anew_in_a_branch(world, begin):
    """Also those of a connection that is open when the session goes back, and while glovebox-egress is away."""
    session = begin()
    code = ("import socket\ndef flood(most=1 << 30):\n  global s\n  s = socket.create_connection(('raw.example.org', 5432), 20)\n  sent = 0\n"
            "  try:\n    while sent < most: sent += s.send(bytes(65536))\n  except OSError: pass\n")
    session.run(code)
    checkpoint = session.call("POST", "/checkpoints", {})[1]["id"]
    session.run("flood(1 << 19)")  # and s stays open
    assert session.call("POST", f"/checkpoints/{checkpoint}/rollback")[0] == 200
    rest = session.run("flood(); s.close()")
    assert [connection["sent"] for connection in rest["network"]] == [1 << 19], rest
    os.kill(egress_of(world), signal.SIGKILL)
    assert session.call("POST", f"/checkpoints/{checkpoint}/rollback")[0] == 200
    none = session.run("flood(); s.close()")
    assert sum(connection["sent"] for connection in none["network"]) == 0, none
    branch = Session(session.daemon, session.call("POST", "/branch", {"checkpoint": checkpoint})[1])
    try:
        own = branch.run("flood(); s.close()")
        assert [connection["sent"] for connection in own["network"]] == [1 << 20], own
    finally:
        branch.end()


def test_a_session_has_network_again_after_a_restart_of_egress(world, begin):
    session = begin()
    quiet = begin(policy="minimal")
    assert session.run(FETCH.format("/before"))["stdout"] == "200\n"
    session.run("import socket\nkept = socket.create_connection(('raw.example.org', 5432), 5)\nkept.recv(8)")
    killed = egress_of(world)
    os.kill(killed, signal.SIGKILL)
    # nothing is refused meanwhile: listening sockets of the session are kept, and new connections wait
    told = session.run("kept.settimeout(20)\ntry: print('lost', kept.recv(8))\nexcept OSError as e: print('lost', type(e).__name__)\n"
                       "for _ in range(100):\n"
                       "  try:\n"
                       "    print(urllib.request.urlopen('http://api.example.org/after', timeout=20).status)\n    break\n"
                       "  except OSError: pass\n")
    assert told["stdout"].startswith("lost") and told["stdout"].endswith("200\n"), told
    assert "glovebox-egress" in [denial["target"] for denial in told["denials"]], told
    assert world.receipt(told)["predicate"]["network_unlisted"] == 1, "the connection that was open"
    assert egress_of(world) != killed
    after = session.run(FETCH.format("/later"))
    # a connection that broke off with the old glovebox-egress may be told by the new one when its cell has ended
    assert [one["path"] for one in after["network"] if one["path"] != "/after"] == ["/later"] and after["denials"] == [], after
    refused = session.run("try: urllib.request.urlopen('http://evil.example.org/')\nexcept OSError as e: print(e.code)")
    assert refused["stdout"] == "403\n"
    assert quiet.run("import socket\ntry: socket.socket()\nexcept OSError as e: print(e.errno)")["stdout"] == "101\n"


# What no rule allows, and what one does, over and over; only the other side's own words count as having passed.
KNOCK = r'''
import socket, time, collections
seen, until = collections.Counter(), time.monotonic() + 5
def knock(kind, address, request):
    try:
        with socket.create_connection(address, 1) as peer:
            peer.settimeout(1)
            peer.sendall(request)
            seen[kind, b"hello from" in b"".join(iter(lambda: peer.recv(65536), b""))] += 1
    except OSError:
        seen[kind, False] += 1
get = b"GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
while time.monotonic() < until:
    knock("number", ("93.184.216.34", 80), get % (b"forbidden", b"api.example.org"))
    knock("host", ("127.0.0.1", 3128), get % (b"forbidden", b"evil.example.org"))
    knock("path", ("127.0.0.1", 3128), b"GET http://files.example.org:8080/forbidden HTTP/1.1\r\nHost: files.example.org:8080\r\n\r\n")
    knock("port", ("93.184.216.34", 8080), get % (b"forbidden", b"files.example.org"))
    knock("allowed", ("127.0.0.1", 3128), b"GET http://api.example.org/allowed HTTP/1.1\r\nHost: api.example.org\r\n\r\n")
print(sorted(seen))
'''


def test_at_no_moment_of_an_end_or_a_start_does_anything_pass(world, begin):
    """glovebox-egress is ended again and again, at any moment of its life, while code knocks at every door."""
    session = begin()
    path = f"{session.place}/contexts/python/run"
    said = []
    code = threading.Thread(target=lambda: said.append(Place(world).call("POST", path, {"code": KNOCK})))
    code.start()
    killed = set()
    while code.is_alive():
        try:
            pid = egress_of(world)
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
        except (ValueError, OSError):  # there is none at this moment
            pass
        code.join(0.05 if len(killed) % 2 else 1.5)  # right after it came, and when it has served a while
    status, result = said[0]
    assert status == 200 and result["status"] == "ok" and len(killed) >= 2, (killed, result)
    assert not any(passed for kind, passed in ast.literal_eval(result["stdout"]) if kind != "allowed"), result["stdout"]
    assert not [request for request in Web.seen if "forbidden" in request[1]], "it reached a server"
    for _ in range(200):
        told = session.run(FETCH.format("/at-last"))
        if told["stdout"] == "200\n":
            return
        time.sleep(0.05)
    raise AssertionError(told)


def test_connections_end_with_the_session(world, begin):
    session = begin()
    session.run("import socket\nkept = socket.create_connection(('raw.example.org', 5432), 5)\nprint(kept.recv(8))")
    sockets = len(os.listdir(f"/proc/{egress_of(world)}/fd"))
    session.end()
    for _ in range(200):
        if len(os.listdir(f"/proc/{egress_of(world)}/fd")) <= sockets - 6:
            return
        time.sleep(0.02)
    raise AssertionError("glovebox-egress keeps sockets of a session that has ended")


def test_the_receipt_lists_a_programs_connections(begin):
    """No cell ever runs beside it."""
    session = begin()
    status, process = session.call("POST", "/processes", {"command": ["python3", "-c", FETCH.format("/of-a-program")]})
    assert status == 201, process
    for _ in range(1000):
        process = session.call("GET", f"/processes/{process['id']}")[1]
        if process["state"] == "ended":
            break
        time.sleep(0.02)
    status, envelope = session.daemon.call("GET", f"/v1/receipts/{process['receipt']}")
    said = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
    assert [(row["host"], row["path"], row["decision"]) for row in said["network"]] == [
        ("api.example.org", "/of-a-program", "allow")], said["network"]
    session.end()

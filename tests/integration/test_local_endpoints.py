"""Endpoints at localhost, at addresses and at names of /etc/hosts: only a policy of the operator can lead there
(egress_rig.py, served_rig.py)."""

import json
import os
import shutil
import socket
import threading

import pytest

from egress_rig import PUBLIC, Egress
from internet import NameServer, Web, close_server
from served_rig import served_world
from test_egress import only, talk
from test_endpoints import METHODS, Upstream, ask, opened, secrets_file
from web_server import WebServer

HOSTS = """127.0.0.1 localhost
127.0.1.1 vm vm.example.org
10.9.8.7 db.corp.example.org  # an own network
93.184.216.34 elsewhere.example.org
127.0.0.1 private.example.org
"""
SECRET = "Bearer 0123456789abcdef"


class SixServer(WebServer):
    address_family = socket.AF_INET6


def serve_at(place, address, port, handler=Upstream):
    with place:
        server = (SixServer if ":" in address else WebServer)((address, port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("needs root and iproute2: network namespaces")
    folder = tmp_path_factory.mktemp("local")
    folder.chmod(0o755)
    hosts = folder / "hosts"
    hosts.write_text(HOSTS)
    hosts.chmod(0o644)
    secrets = secrets_file(folder, f"model: {{url: 'http://localhost:8080', headers: {{Authorization: {SECRET}}}}}")
    egress = Egress(f"{PUBLIC}:53", secrets=secrets, hosts=hosts)
    egress.gate.run("ip", "address", "add", "10.9.8.7/32", "dev", "lo")
    names = NameServer(egress.outside)
    servers = [serve_at(egress.gate, address, port) for address, port in (
        ("127.0.0.1", 8080), ("::1", 8081), ("127.0.1.1", 8082), ("10.9.8.7", 8083))]
    yield egress
    egress.close()
    for server in [names, *servers]:
        close_server(server)


def model(host, port, **more):
    return {"name": "model", "host": host, "port": port, **more}


@pytest.mark.parametrize("host,port,address", [
    ("localhost", 8080, "127.0.0.1"), ("localhost", 8081, "::1"), ("127.0.0.1", 8080, "127.0.0.1"), ("[::1]", 8081, "::1"),
    ("vm", 8082, "127.0.1.1"), ("vm.example.org", 8082, "127.0.1.1"), ("db.corp.example.org", 8083, "10.9.8.7"),
    ("10.9.8.7", 8083, "10.9.8.7"), ("private.example.org", 8080, "127.0.0.1")])
def test_an_upstream_that_the_operator_has_stated_is_reached(world, host, port, address):
    records = []
    with opened(world, model(host, port), records):
        head, body = ask(world, "/echo/x", name="model")
    record = only(records)
    assert b" 200 " in head.splitlines()[0] and json.loads(body)[0] == "/echo/x", (head, record)
    assert dict(json.loads(body)[1])["Host"] == f"{host}:{port}"
    assert (record["reason"], record["name"], record["address"], record["status"]) == ("ALLOWED", "model.endpoint", address, 200)


def test_its_network_bounds_a_stated_address_too(world):
    for network, reason, address in (("127.0.0.1/32", "ALLOWED", "127.0.0.1"), ("10.0.0.0/8", "SPECIAL_ADDRESS", "::")):
        records = []
        rule = {"host": "model.endpoint", "ports": [80], "methods": METHODS, "endpoint": 0, "network": network}
        with world.channel([rule], records, endpoints=[model("localhost", 8080)]):
            ask(world, "/echo/x", name="model")
        record = only(records)
        assert (record["reason"], record["address"]) == (reason, address)


def test_a_credential_goes_to_a_stated_upstream(world):
    with opened(world, model("localhost", 8080, headers=["Authorization"])):
        head, _ = ask(world, "/plain", name="model")
    assert b" 200 " in head and dict(Upstream.seen[-1][2])["Authorization"] == SECRET


@pytest.mark.parametrize("host,reason", [
    ("loop.example.org", "SPECIAL_ADDRESS"), ("six-loop.example.org", "SPECIAL_ADDRESS"), ("own.example.org", "SPECIAL_ADDRESS"),
    ("sub.localhost", "NOT_FOUND"), ("nowhere.example.org", "NOT_FOUND")])
def test_an_upstream_that_dns_leads_home_is_refused(world, host, reason):
    records, before = [], len(Upstream.seen)
    with opened(world, model(host, 8080), records):
        said = b"".join(ask(world, name="model"))
    assert only(records)["reason"] == reason and len(Upstream.seen) == before
    assert b" is refused: the name " in said and (b"policy of the sandbox" in said) == (reason != "NOT_FOUND"), said


def test_an_upstream_that_dns_rebinds_is_refused(world):
    reasons = []
    for _ in range(4):
        records = []
        with opened(world, model("rebinds.example.org", 8080), records):
            ask(world, name="model")
        reasons.append(only(records)["reason"])
    assert reasons[-2:] == ["SPECIAL_ADDRESS"] * 2 and set(reasons[:2]) <= {"UNREACHABLE", "SPECIAL_ADDRESS"}


def test_a_rule_for_a_host_is_not_looked_up_in_etc_hosts(world):
    """What is in /etc/hosts is the host's own: only an endpoint leads there."""
    records, before = [], len(Upstream.seen)
    rules = [{"host": name, "ports": [port]} for name, port in (("vm", 8082), ("db.corp.example.org", 8083))]
    with world.channel(rules, records, ports=(8082, 8083)):
        for name, port in (("vm", 8082), ("db.corp.example.org", 8083)):
            talk(world.connect("127.0.0.1", 3128), f"CONNECT {name}:{port} HTTP/1.1\r\n\r\n".encode())
    assert [record["reason"] for record in records] == ["NOT_FOUND"] * 2 and len(Upstream.seen) == before


def test_code_that_names_the_upstream_itself_is_refused(world):
    records, before = [], len(Upstream.seen)
    with opened(world, model("localhost", 8080), records):
        for host in ("localhost", "127.0.0.1", "vm", "[::1]"):
            answer = talk(world.connect("127.0.0.1", 3128), f"GET http://{host}:8080/ HTTP/1.1\r\nHost: {host}:8080\r\n\r\n".encode())
            assert b" 403 " in answer.splitlines()[0]
        answer = talk(world.connect(world.look_up("model.endpoint"), 80), b"GET / HTTP/1.1\r\nHost: localhost:8080\r\n\r\n")
        assert b" 403 " in answer.splitlines()[0]
    assert "ALLOWED" not in [record["reason"] for record in records] and len(Upstream.seen) == before


class Redirecting(Web):
    def do_GET(self):
        self.send_response(302)
        self.send_header("Location", self.path[1:])
        self.send_header("Content-Length", "0")
        self.end_headers()


def test_a_redirect_to_this_machine_is_not_followed(world):
    server = serve_at(world.gate, "127.0.0.1", 8090, Redirecting)
    before = len(Upstream.seen)
    with opened(world, model("localhost", 8090)):
        head, _ = ask(world, "/http://localhost:8080/echo/x", name="model")
        assert b"Location: http://localhost:8080/echo/x" in head
        answer = talk(world.connect("127.0.0.1", 3128), b"GET http://localhost:8080/echo/x HTTP/1.1\r\nHost: localhost:8080\r\n\r\n")
        assert b" 403 " in answer.splitlines()[0]
        assert b"Location: http://model.endpoint/there" in ask(world, "/http://localhost:8090/there", name="model")[0]
    close_server(server)
    assert len(Upstream.seen) == before


# --- with the daemon ---------------------------------------------------------------------------------

POLICY = """name: web
extends: minimal
description: a server of this machine
network: {endpoints: {model: {url: "http://localhost:11434", methods: [GET], paths: ["/api/"]}}}
"""
CODE = """import urllib.request
for path in ("/api/x", "/other"):
    try: print(urllib.request.urlopen("http://model.endpoint" + path).read().decode())
    except urllib.error.HTTPError as e: print(e.code)
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    with served_world(folder, {"web": POLICY}, lambda outside: []) as daemon:
        yield daemon


@pytest.fixture
def ollama(served):
    """A server on the loopback of the namespace that glovebox serve stands in."""
    class Place:
        def __enter__(self):
            self.before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
            target = os.open(f"/proc/{served.process.pid}/ns/net", os.O_RDONLY)
            os_setns(target)
            os.close(target)

        def __exit__(self, *_):
            os_setns(self.before)
            os.close(self.before)
    server = serve_at(Place(), "127.0.0.1", 11434, Web)
    yield server
    close_server(server)


def os_setns(fd):
    from egress_rig import CLONE_NEWNET, libc, must
    must(libc.setns(fd, CLONE_NEWNET), "setns")


def test_a_run_reaches_the_operators_own_server_and_the_receipt_names_it(served, ollama):
    result = served.run(CODE)
    assert result["stdout"] == "hello from localhost:11434\n403\n", result
    first, second = result["network"]
    assert (first["host"], first["address"], first["decision"], first["status"]) == ("model.endpoint", "127.0.0.1", "allow", 200)
    assert second["decision"] == "deny"
    proven = served.receipt(result)["predicate"]["network"]
    assert [(one["host"], one["address"]) for one in proven] == [("model.endpoint", "127.0.0.1"), ("model.endpoint", None)]


@pytest.mark.parametrize("network,status", [
    ({"endpoints": {"mine": {"url": "http://localhost:11434"}}}, 400),
    ({"allow": ["localhost"]}, 400),
    ({"allow": [{"host": "localhost", "ports": [11434]}]}, 400),
    ({"allow": [{"network": "127.0.0.1/32", "ports": [11434]}]}, 403),
    ({"allow": [{"host": "other.endpoint"}]}, 403),
    ({"allow": [{"host": "model.endpoint", "network": "127.0.0.1/32"}]}, 403),
    ({"allow": [{"host": "model.endpoint", "paths": ["/"]}]}, 403)])
def test_a_request_cannot_name_this_machine(served, ollama, network, status):
    before = len(Web.seen)
    got, answer = served.post({"code": CODE, "policy": "web", "network": network})
    assert got == status, answer
    assert len(Web.seen) == before


def test_a_request_may_ask_for_less_of_the_endpoint(served, ollama):
    result = served.run(CODE, network={"allow": [{"host": "model.endpoint", "paths": ["/api/y"]}]})
    assert result["stdout"] == "403\n403\n", result


# --- what the operator is told ------------------------------------------------------------------------

@pytest.mark.parametrize("endpoint,told", [
    ("{url: 'http://localhost:11434'}", "; connects to 127.0.0.1, ::1"),
    ("{url: 'http://localhost:11434', network: 127.0.0.1/32}", "; connects to 127.0.0.1"),
    ("{url: 'http://[::1]:1'}", "http://[::1]:1; connects to ::1"),
    ("{url: 'http://localhost', network: 10.0.0.0/8}", "; connects to no address, for none lies in its network"),
    ("{url: 'https://api.example.org'}", "https://api.example.org:443")])
def test_show_and_validate_print_the_upstream_of_an_endpoint(glovebox, tmp_path, endpoint, told):
    (tmp_path / "p.yaml").write_text(f"name: p\ntemplate: t\nlanguages: [python]\nnetwork: {{endpoints: {{m: {endpoint}}}}}\n")
    env = {"GLOVEBOX_POLICIES": str(tmp_path), "GLOVEBOX_STATE": str(tmp_path / "s")}
    for said in (glovebox("policy", "show", "p", env=env), glovebox("policy", "validate", str(tmp_path / "p.yaml"), env=env)):
        [line] = [line for line in said.stdout.decode().splitlines() if line.startswith("  endpoint ")]
        assert said.returncode == 0 and line.endswith(told) and ("connects" in told) == ("connects" in line), said


@pytest.mark.parametrize("url", ["http://0.0.0.0:11434", "http://127.1", "http://2130706433", "http://[::ffff:127.0.0.1]", "http://[::]"])
def test_an_address_in_another_spelling_is_refused(glovebox, tmp_path, url):
    (tmp_path / "p.yaml").write_text(f"name: p\ntemplate: t\nlanguages: [python]\nnetwork: {{endpoints: {{m: {{url: '{url}'}}}}}}\n")
    said = glovebox("policy", "validate", str(tmp_path / "p.yaml"))
    assert said.returncode == 125 and b"url names one host; write https://api.example.org/v1, or http://localhost:11434" in said.stderr

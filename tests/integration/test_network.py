"""Policies with a network, end to end: code in a sandbox under `glovebox serve`, which runs in a network namespace of
the test; a second namespace has servers that stand for the internet."""

import json
import os
import pathlib
import re
import resource
import select
import signal
import ssl
import subprocess
import time

import jsonschema
import pytest

from described import other_moments
from egress_rig import PUBLIC
from internet import EchoServer, Web, certificate, serve_web
from served_rig import served_world

TOP = pathlib.Path(__file__).resolve().parents[2]

POLICY = """name: web
extends: minimal
description: two hosts of the test
network:
  allow:
    - {host: api.example.org, ports: [80, 443]}
    - {host: files.example.org, ports: [8080], methods: [GET], paths: ["/public/"]}
    - {host: raw.example.org, ports: [5432]}
  endpoints:
    github: {url: "https://api.example.org", paths: ["/repos/"], headers: [Authorization]}
    elsewhere: {url: "https://files.example.org", headers: [Authorization]}
  bytes: 1MiB
"""

SECRETS = """github:
  url: https://api.example.org
  headers: {Authorization: Bearer 0123456789abcdef}
elsewhere:
  url: https://api.example.org
  headers: {Authorization: Bearer 0123456789abcdef}
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("net")
    cert, key = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    secrets = folder / "secrets.yaml"
    secrets.write_text(SECRETS)
    secrets.chmod(0o600)

    def serve(outside):
        return [serve_web(outside, 80), serve_web(outside, 8080), serve_web(outside, 443, context), EchoServer(outside, 5432)]
    with served_world(folder, {"web": POLICY}, serve, words=["--secrets", secrets, "--ca-file", cert]) as daemon:
        daemon.cert = cert.read_text()
        yield daemon


def test_code_that_knows_nothing_of_proxies(world):
    for how in ({}, {"cold": True}, {"mode": "cell"}):
        result = world.run("import socket\ns = socket.create_connection(('api.example.org', 80), 5)\n"
                           "s.sendall(b'GET /x?secret=1 HTTP/1.1\\r\\nHost: api.example.org\\r\\n\\r\\n')\n"
                           "print(s.makefile('rb').read().decode().splitlines()[-1])", **how)
        assert (result["status"], result["stdout"]) == ("ok", "hello from api.example.org\n"), result
        [connection] = result["network"]
        assert connection["took_ms"] >= 0 and connection["received"] > 40 and connection["sent"] > 40
        assert {key: connection[key] for key in ("host", "port", "decision", "rule", "reason", "address", "method", "path",
                                                 "status")} == {
            "host": "api.example.org", "port": 80, "decision": "allow", "rule": "api.example.org:80,443", "reason": None,
            "address": PUBLIC, "method": "GET", "path": "/x", "status": 200}
        assert result["denials"] == []
        proof = world.receipt(result)
        jsonschema.validate(proof, json.loads((TOP / "docs/reference/receipt.schema.json").read_text()))
        assert proof["predicate"]["network_unlisted"] == 0
        [proven] = proof["predicate"]["network"]
        assert proven.pop("began_ms") > 1 << 40
        assert proven == {key: connection[key] for key in connection if key != "took_ms"}


def test_libraries_find_their_way(world):
    result = world.run("import urllib.request, ssl\nprint(urllib.request.urlopen('http://api.example.org/').read().decode())\n"
                       "tls = ssl.create_default_context(cafile='cert')\n"
                       "print(urllib.request.urlopen('https://api.example.org/', context=tls).read().decode())\n"
                       "direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls))\n"
                       "print(direct.open('https://api.example.org/').read().decode())",
                       files=[{"path": "cert", "content": world.cert}])
    assert result["stdout"] == 3 * "hello from api.example.org\n", result
    assert [connection["port"] for connection in result["network"]] == [80, 443, 443]


def test_an_endpoint_has_credentials_that_code_never_sees(world):
    result = world.run("import urllib.request\n"
                       "for url in ('http://github.endpoint/repos/x', 'http://github.endpoint/users', 'http://elsewhere.endpoint/'):\n"
                       "  try: print(urllib.request.urlopen(url).read().decode())\n"
                       "  except urllib.error.HTTPError as e: print(e.code, e.read().decode().strip())\n"
                       "  direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))\n"
                       "print(direct.open('http://github.endpoint/repos/y').read().decode())")
    first, second, third, fourth = result["stdout"].splitlines()
    assert first == fourth == "hello from api.example.org", result
    assert second.startswith("403 ") and third.startswith("503 ") and "secrets file" in third
    [(method, _, fields, _)] = [entry for entry in Web.seen if entry[1] == "/repos/x"]
    assert method == "GET" and fields["Authorization"] == "Bearer 0123456789abcdef"
    assert "0123456789abcdef" not in json.dumps(result)
    assert [(one["host"], one["rule"], one["status"]) for one in result["network"]] == [
        ("github.endpoint", "github.endpoint:80 GET,HEAD /repos/", 200), ("github.endpoint", None, 0),
        ("elsewhere.endpoint", "elsewhere.endpoint:80 GET,HEAD", 0),
        ("github.endpoint", "github.endpoint:80 GET,HEAD /repos/", 200)]


def test_a_request_may_ask_for_less_and_never_more(world):
    code = ("import urllib.request, socket\nfor port in (80, 443):\n"
            "  try: print(socket.create_connection(('api.example.org', port), 5).getpeername()[1])\n"
            "  except OSError as e: print(type(e).__name__)")
    both = world.run(code)
    assert both["stdout"] == "80\n443\n"
    less = world.run("import urllib.request\nfor url in ('http://api.example.org/', 'http://files.example.org:8080/public/x'):\n"
                     "  try: print(urllib.request.urlopen(url).status)\n"
                     "  except urllib.error.HTTPError as e: print(e.code)",
                     network={"allow": [{"host": "files.example.org", "ports": [8080], "paths": ["/public/x"]}]})
    assert less["stdout"] == "403\n200\n", less
    assert [one["rule"] for one in less["network"]] == [None, "files.example.org:8080 GET /public/x"]
    none = world.run(code, network="none")
    assert none["stdout"] == "gaierror\ngaierror\n" and none["network"] == [] and none["denials"], none
    status, answer = world.post({"code": code, "policy": "web", "network": {"allow": ["evil.example.org"]}})
    assert status == 403 and "no rule of policy web allows evil.example.org:443" in answer["error"]["message"], answer


def test_connections_are_counted(world):
    def counts():
        rows = dict(row.rsplit(" ", 1) for row in world.call("GET", "/metrics")[1].decode().splitlines() if row[0] != "#")
        ends = {reason: int(rows[f'glovebox_network_connections_total{{reason="{reason}"}}']) for reason in ("ALLOWED", "ENDED", "NO_RULE")}
        return (ends["ALLOWED"] + ends["ENDED"], ends["NO_RULE"],  # ENDED: the run's end was seen before the connection's
                int(rows['glovebox_network_bytes_total{direction="received"}']))
    before = counts()
    world.run("import urllib.request\nfor name in ('api', 'evil'):\n"
              "  try: urllib.request.urlopen(f'http://{name}.example.org/')\n  except OSError as e: pass")
    after = counts()
    assert [after[0] - before[0], after[1] - before[1]] == [1, 1] and after[2] > before[2]


def tail(world, *arguments):
    return world.glovebox.start("net", "tail", "--json", "--daemon", world.path, *arguments, stdout=subprocess.PIPE)


def next_of(watcher):
    """Its next line, which comes within 20 s."""
    line = b""
    while not line.endswith(b"\n"):
        assert select.select([watcher.stdout], [], [], 20)[0], line
        byte = os.read(watcher.stdout.fileno(), 1)
        assert byte, line
        line += byte
    return json.loads(line)


def test_connections_are_seen_as_they_come(world):
    """An open tunnel is reported while it is open; for one run, for all, and after a given event."""
    ask = "import urllib.request as u\nprint(u.urlopen('http://api.example.org/first').status)"
    first = world.run(ask)["id"]
    with tail(world, "--last", "1") as watcher:
        begins = next_of(watcher)  # it watches from now on
        assert (begins["event"], begins["source"], begins["policy"], begins["path"]) == ("ended", first, "web", "/first")
        assert begins["rule"] == "api.example.org:80,443" and begins["status"] == 200 and begins["received"] > 0
        run = world.run("import socket\ntry: socket.gethostbyname('evil.example.org')\nexcept OSError as e: print('no')\n"
                        "s = socket.create_connection(('raw.example.org', 5432), 5)\nprint(s.recv(8))\ns.close()")["id"]
        events = []
        while not events or events[-1]["event"] != "ended":
            events.append(next_of(watcher))
        watcher.terminate()
    assert {(event["event"], event["host"], event["source"]) for event in events} == {
        ("begun", "raw.example.org", run), ("ended", "raw.example.org", run), ("refused", "evil.example.org", run)}
    assert other_moments(events) == [] and all(event["started_at"] for event in events)
    kinds = [event["event"] for event in events if event["host"] == "raw.example.org"]
    assert kinds == ["begun", "ended"] and all(event["number"] > begins["number"] for event in events)
    done = world.glovebox("net", "tail", "--daemon", world.path, "--once", "--run", run, "--last", "3")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3, done
    assert run.encode() in done.stdout and b"no rule of the policy names this host and port" in done.stdout
    wrong = world.glovebox("net", "tail", "--daemon", world.path, "--run", "../x")
    assert wrong.returncode != 0 and b"is no id of a run or session" in wrong.stderr


def test_rules_are_counted_and_unused_ones_reported(world):
    def rules():
        [policy] = [row for row in world.get("/v1/network/rules")[1]["policies"] if row["name"] == "web"]
        return policy, {row["rule"]: row for row in policy["rules"]}
    before, old = rules()
    world.run("import urllib.request\nfor name in ('api', 'evil'):\n"
              "  try: urllib.request.urlopen(f'http://{name}.example.org/')\n  except OSError as e: pass",
              network={"allow": [{"host": "api.example.org", "ports": [80]}]})  # less, and yet it is this rule
    after, new = rules()
    rule = "api.example.org:80,443"
    assert new[rule]["connections"] == old[rule]["connections"] + 1 and new[rule]["received"] > old[rule]["received"]
    assert new[rule]["last_used_at"] > (old[rule]["last_used_at"] or "") and after["refused"] == before["refused"] + 1
    unused = [name for name, row in new.items() if row["last_used_at"] is None]
    told = world.glovebox("net", "rules", "--daemon", world.path, "--unused")
    assert told.returncode == 0 and all(name.encode() in told.stdout for name in unused) and rule.encode() not in told.stdout
    assert f"{len(unused)} of ".encode() in told.stdout and b"not used since 20" in told.stdout
    line = f'glovebox_network_rule_connections_total{{policy="web",rule="{rule}"}} {new[rule]["connections"]}'
    assert line in world.call("GET", "/metrics")[1].decode().splitlines()


def test_other_tenants_connections_are_not_seen(world):
    world.run("import urllib.request as u\nu.urlopen('http://api.example.org/mine')")

    def made(*arguments):
        return json.loads(world.glovebox("key", "create", "--json", *arguments).stdout)["key"]

    def seen(key, query=""):
        return world.call("GET", f"/v1/network/connections?follow=0{query}", headers={"Authorization": f"Bearer {key}"})
    other = made("--name", "other", "--tenant", "other", "--scope", "run")
    admin = made("--name", "admin", "--tenant", "other", "--scope", "run,admin")
    assert seen(other) == (200, b"") and seen(other, "&all=1")[0] == 403
    assert seen(admin) == (200, b"") and b'"path":"/mine"' in seen(admin, "&all=1")[1]
    assert b'"path":"/mine"' in world.call("GET", "/v1/network/connections?follow=0")[1]
    assert world.call("GET", "/v1/network/rules", headers={"Authorization": f"Bearer {other}"})[0] == 403


def test_a_secrets_file_that_others_may_read_is_not_used(world, tmp_path):
    path = tmp_path / "secrets.yaml"
    path.write_text(SECRETS)
    path.chmod(0o644)
    serving = world.glovebox.start("serve", "--socket", str(tmp_path / "s"), "--slots", "4", "--secrets", str(path),
                                   stderr=subprocess.PIPE, text=True)
    _, said = serving.communicate(timeout=30)
    assert serving.returncode == 125 and f"'{path}' has mode 0644, others may use it; chmod 600 it" in said, said
    assert "0123456789abcdef" not in said


def test_what_is_refused_says_so_and_is_a_denial(world):
    result = world.run("import socket, urllib.request\n"
                       "for url in ('http://evil.example.org/', 'http://files.example.org:8080/secret'):\n"
                       "  try: urllib.request.urlopen(url)\n"
                       "  except urllib.error.HTTPError as e: print(e.code, e.read().decode().strip())\n"
                       "for target in (('evil.example.org', 80), ('169.254.169.254', 80), ('api.example.org', 22)):\n"
                       "  try: print(socket.create_connection(target, 5).recv(12))\n"
                       "  except OSError as e: print(type(e).__name__)\n"
                       "print(urllib.request.urlopen('http://files.example.org:8080/public/a').read().decode())")
    lines = result["stdout"].splitlines()
    assert lines[0].startswith("403 glovebox: evil.example.org:80 is refused: no rule of the policy"), result
    assert lines[1].startswith("403 glovebox: files.example.org:8080 is refused: the policy does not allow this path")
    assert lines[2:5] == ["gaierror", "b'HTTP/1.1 408'" if "408" in lines[3] else lines[3], "ConnectionRefusedError"]
    assert lines[5] == "hello from files.example.org:8080"
    targets = {denial["target"]: denial["message"] for denial in result["denials"] if denial["layer"] == "network"}
    assert "evil.example.org:80" in targets and "files.example.org:8080" in targets, result["denials"]
    assert "evil.example.org:53" in targets and "169.254.169.254:80" in targets


def test_policies_without_a_network_pay_nothing(world):
    _, result = world.post({"code": "import socket\nsocket.create_connection(('api.example.org', 80))", "language": "python",
                            "policy": "minimal"})
    assert result["status"] == "error" and result["network"] == []
    assert any(denial["layer"] == "network" for denial in result["denials"])


def test_neither_runs_nor_their_names_mix(world):
    code = ("import socket\na = socket.gethostbyname('api.example.org')\nprint(a)\n"
            "try: socket.create_connection(('198.18.0.9', 80), 5).recv(1)\nexcept OSError: pass")
    assert world.run(code)["stdout"] == world.run(code)["stdout"] == "198.18.0.1\n"


def test_uploads_end_at_their_cap(world):
    result = world.run("import socket\ns = socket.create_connection(('raw.example.org', 5432), 5)\nsent = 0\ntry:\n"
                       "  while True: sent += s.send(bytes(65536))\nexcept OSError: print('ended')")
    assert result["stdout"] == "ended\n", result
    [connection] = result["network"]
    assert connection["reason"] == "the run has sent as many bytes as its policy allows" and connection["sent"] == 1 << 20


def test_a_run_that_ends_ends_its_connections(world):
    result = world.run("import socket\nkept = socket.create_connection(('raw.example.org', 5432), 5)\nprint(kept.recv(20))\n"
                       "import time\ntime.sleep(60)", limits={"wall_ms": 4000})
    assert result["stdout"] == "b'welcome\\n'\n", result
    assert result["status"] == "limit" and result["limit"]["name"] == "wall"
    [connection] = result["network"]
    assert connection["decision"] == "allow" and connection["received"] == 8


# What code might try instead of asking; each must fail at once, and nothing of it may leave.
OTHER_WAYS = {
    "UDP to a port that no rule names": ("s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.connect(('8.8.8.8', 443))\n"
                                         "s.send(b'quic')\ns.recv(1)", "ConnectionRefusedError"),
    "UDP by IPv6": ("s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\ns.connect(('2001:4860:4860::8888', 443))\ns.send(b'x')\n"
                    "s.recv(1)", "ConnectionRefusedError"),
    "a question to somebody else's name server": (
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.settimeout(4)\n"
        "s.sendto(b'\\0\\7\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6secret\\4evil\\3org\\0\\0\\20\\0\\1', ('8.8.8.8', 53))\n"
        "print('code', s.recv(512)[3] & 15)", "code 5"),
    "a raw socket": ("socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)", "OSError"),
    "a raw IPv6 socket": ("socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58)", "OSError"),
    "an echo request": ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)", "OSError"),
    "a packet socket": ("socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)", "OSError PermissionError"),
    "SCTP": ("socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, 132)", "PermissionError OSError"),
    "MPTCP": ("s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)\ns.settimeout(4)\ns.connect(('8.8.8.8', 22))",
              "OSError ConnectionRefusedError"),
    "vsock": ("socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)", "OSError PermissionError"),
    "an abstract socket of the host": ("socket.socket(socket.AF_UNIX).connect('\\0glovebox-test-of-abstract')", "ConnectionRefusedError"),
    "the socket of the daemon": ("socket.socket(socket.AF_UNIX).connect('/run/glovebox/glovebox.sock')", "FileNotFoundError"),
    "binding a port of the proxy": ("s = socket.socket()\ns.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\ns.bind(('127.0.0.1', 3128))",
                                    "OSError"),
    "binding the port of names": ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(('127.0.0.1', 53))", "PermissionError OSError"),
    "TCP to a port that no rule names": ("socket.create_connection(('93.184.216.34', 22), 4)", "ConnectionRefusedError"),
    "TCP to the host itself": ("socket.create_connection(('93.184.216.1', 22), 4)", "ConnectionRefusedError"),
    "SOCKS": ("s = socket.create_connection(('127.0.0.1', 3128), 4)\ns.sendall(b'\\5\\1\\0')\nprint(s.recv(12))", "b'HTTP/1.1 400"),
    "TLS by its number": ("s = socket.create_connection(('93.184.216.34', 443), 4)\nprint(s.recv(1))", "b'\\x15'"),
    "a new namespace": ("import os, ctypes\nprint(ctypes.CDLL(None, use_errno=True).unshare(0x40000000))", "-1"),
    "a route of one's own": ("s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)\nimport struct\n"
                             "s.send(struct.pack('=IHHIIBBBBBBBBI', 28, 24, 0x405, 1, 0, 2, 0, 0, 0, 254, 3, 0, 1, 0))\n"
                             "print(struct.unpack('=i', s.recv(4096)[16:20])[0])", "-1"),
}


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_other_ways(world, way):
    code, expected = OTHER_WAYS[way]
    result = world.run("import socket, time\nbegin = time.monotonic()\ntry:\n"
                       + "".join(f"    {line}\n" for line in code.split("\n"))
                       + "except OSError as e: print(type(e).__name__)\nprint('slow' if time.monotonic() - begin > 2 else 'at once')",
                       mode="script")
    said = result["stdout"].splitlines()
    assert len(said) == 2 and said[1] == "at once", result
    assert said[0] in expected.split(" ") or said[0].startswith(expected), said
    assert all(connection["decision"] == "deny" for connection in result["network"]), result["network"]


def egress_of(world):
    children = pathlib.Path(f"/proc/{world.process.pid}/task/{world.process.pid}/children").read_text().split()
    [pid] = [int(pid) for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("glovebox-egress")]
    return pid


def test_the_program_has_nothing_to_take_out(world):
    status = pathlib.Path(f"/proc/{egress_of(world)}/status").read_text()
    assert "Uid:\t1879113729" in status and "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status
    assert "CapEff:\t0000000000000000" in status


def test_killed_egress_restarts_and_opens_nothing(world):
    world.run("import urllib.request\nurllib.request.urlopen('http://api.example.org/')")
    watcher = tail(world, "--last", "1")
    assert next_of(watcher)["event"] == "ended"
    peer = world.connect()
    body = json.dumps({"code": "import socket, time\ns = socket.create_connection(('raw.example.org', 5432), 5)\nprint(s.recv(8))\n"
                               "print('ready', flush=True)\ns.settimeout(20)\ntry: print(s.recv(8))\nexcept OSError as e: print(type(e).__name__)\n"
                               "try: socket.create_connection(('api.example.org', 80), 5)\nexcept OSError as e: print('lost', type(e).__name__)\n",
                       "language": "python", "policy": "web"}).encode()
    peer.sendall(b"POST /v1/runs?stream=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    got = b""
    while b"ready" not in got:
        got += peer.recv(65536)
    os.kill(egress_of(world), signal.SIGKILL)
    while b'"receipt"' not in got:
        block = peer.recv(65536)
        assert block, got
        got += block
    peer.close()
    assert b"lost" in got and b"glovebox-egress" in got
    [number] = re.findall(rb'"receipt":"(rcp_\w+)"', got)
    assert world.receipt({"receipt": number.decode()})["predicate"]["network_unlisted"] == 1, "the connection that was open"
    for _ in range(100):
        status, result = world.post({"code": "import urllib.request\nprint(urllib.request.urlopen('http://api.example.org/').status)",
                                     "language": "python", "policy": "web"})
        if status == 200 and result["stdout"] == "200\n":
            break
        assert status != 200 or result["status"] in ("lost", "error"), result
        time.sleep(0.1)
    else:
        raise AssertionError(result)
    seen = {}
    while seen.get("event") != "begun" or seen["source"] != result["id"]:  # who watched still does
        seen = next_of(watcher)
    watcher.terminate()
    watcher.communicate(timeout=20)


def test_what_cannot_be_started_is_tried_again(world):
    """`glovebox serve` has no descriptor left when glovebox-egress ends; meanwhile it heeds everything else."""
    pid, log = world.process.pid, pathlib.Path(world.log.name)
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (7, before[1]))  # as many as it watches; what is open stays so
    try:
        os.kill(egress_of(world), signal.SIGKILL)
        end = time.monotonic() + 20
        while "trying again every second" not in log.read_text():
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        time.sleep(2.5)
        assert log.read_text().count("trying again") == 1, "it is said once"
        with pytest.raises(ValueError):
            egress_of(world)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    for _ in range(100):
        status, result = world.post({"code": "import urllib.request\nprint(urllib.request.urlopen('http://api.example.org/').status)",
                                     "language": "python", "policy": "web"})
        if status == 200 and result["stdout"] == "200\n":
            return
        time.sleep(0.1)
    raise AssertionError(result)

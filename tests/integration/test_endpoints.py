"""Endpoints: http://NAME.endpoint/ leads to one upstream, with credentials that code never sees (egress_rig.py)."""

import http.server
import json
import os
import select
import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest

from egress_rig import PUBLIC, Egress
from internet import NameServer, certificate, close_server
from test_egress import only, talk
from web_server import WebServer

SECRET = "Bearer sk-0123456789abcdef/x+y"
TOKEN = SECRET.split()[1]
PASSWORD = "correct horse battery"

SECRETS = f"""github:
  url: https://api.example.org
  headers:
    Authorization: {SECRET}
plain:
  url: http://files.example.org:8080/
  headers:
    X-Api-Key: key-0123456789
    Authorization: Basic dXNlcjpjb3JyZWN0IGhvcnNlIGJhdHRlcnk=
"""


class Upstream(http.server.BaseHTTPRequestHandler):
    """Says what it was asked, and more than it should."""

    protocol_version = "HTTP/1.1"
    seen = []

    def answer(self, body, status=200, **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in fields and "Transfer_Encoding" not in fields:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while (size := int(self.rfile.readline(), 16)) > 0:
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        Upstream.seen.append((self.command, self.path, self.headers.items(), body))
        kind, _, rest = self.path.lstrip("/").partition("/")
        given = self.headers.get("Authorization", "")
        if kind == "echo":
            self.answer(json.dumps([self.path, self.headers.items()]).encode(), X_You_Said=given)
        elif kind == "bytes":
            self.answer(bytes(int(rest)))
        elif kind == "spelled":
            self.answer((given.split()[-1] + " " + PASSWORD + " " + given.replace("/", "%2F").replace("+", "%2B")
                         + given.replace("+", "%2b") + given.replace("+", "\\u002B") + given.replace("/", "&#x2F;")).encode())
        elif kind == "shortened":
            self.answer(f"{given[:-4]}… {given[:-1]}".encode(), X_You_Said=given[:-1])
        elif kind == "pieces":
            self.answer(b"", Transfer_Encoding="chunked")
            for byte in f"the secret is {given}!".encode() * 20:
                self.wfile.write(b"1\r\n%c\r\n" % byte)
                self.wfile.flush()
            self.wfile.write(b"0\r\nX-Trailer: " + given.encode() + b"\r\n\r\n")
        elif kind == "redirect":
            self.answer(b"", 302, Location={"in": "https://api.example.org/echo/there", "out": "https://evil.example.org/",
                                            "path": "/echo/here", "slash": "//evil.example.org/"}[rest])
        elif kind == "short":
            self.answer(b"short", Content_Length="10")
            self.close_connection = True
        elif kind == "gzip":
            self.answer(b"\x1f\x8b", Content_Encoding="gzip")
        elif kind == "twice":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        elif kind == "drip":
            self.answer(b"", Transfer_Encoding="chunked")
            for _ in range(int(rest)):
                self.wfile.write(b"1\r\nx\r\n")
                self.wfile.flush()
                time.sleep(0.5)
            self.wfile.write(b"0\r\n\r\n")
        elif kind == "slow":
            self.answer(b"", Transfer_Encoding="chunked")
            self.wfile.write(b"3\r\none\r\n")
            self.wfile.flush()
            self.server.go_on.wait(10)
            self.wfile.write(b"3\r\ntwo\r\n0\r\n\r\n")
        else:
            self.answer(b"upstream: " + str(len(body)).encode())

    do_POST = do_PUT = do_DELETE = do_HEAD = do_TRACE = do_OPTIONS = do_GET

    def log_message(self, *_):
        pass


def serve(place, port, context=None):
    with place:
        server = WebServer((PUBLIC, port), Upstream)
    server.go_on = threading.Event()
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def secrets_file(folder, text, mode=0o600, owner=65534):
    path = folder / f"secrets-{len(list(folder.iterdir()))}"
    path.write_text(text)
    path.chmod(mode)
    os.chown(path, owner, 0)
    return path


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("needs root and iproute2: network namespaces")
    folder = tmp_path_factory.mktemp("endpoints")
    cert, key = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    egress = Egress(f"{PUBLIC}:53", secrets=secrets_file(folder, SECRETS), ca_file=cert)
    names = NameServer(egress.outside)
    egress.servers = [serve(egress.outside, 443, context), serve(egress.outside, 8080)]
    yield egress
    egress.close()
    names.close()
    for server in egress.servers:
        close_server(server)


METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE"]


def github(**more):
    return {"name": "github", "host": "api.example.org", "port": 443, "is_tls": 1, "headers": ["Authorization"], **more}


def plain(**more):
    return {"name": "plain", "host": "files.example.org", "port": 8080, "headers": ["X-Api-Key", "Authorization"], **more}


def opened(world, endpoint, records=None, methods=None, path="", **terms):
    rule = {"host": f"{endpoint['name']}.endpoint", "ports": [80], "methods": methods or METHODS, "path": path, "endpoint": 0}
    return world.channel([rule], records, endpoints=[endpoint], **terms)


def ask(world, path="/", method="GET", name="github", extra="", body=b""):
    peer = world.connect(world.look_up(f"{name}.endpoint"), 80)
    answer = talk(peer, f"{method} {path} HTTP/1.1\r\nHost: {name}.endpoint\r\n{extra}\r\n".encode() + body)
    head, _, rest = answer.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head.lower():
        whole = b""
        while True:
            size, _, rest = rest.partition(b"\r\n")
            if not size or int(size, 16) == 0:
                return head, whole
            whole, rest = whole + rest[:int(size, 16)], rest[int(size, 16) + 2:]
    return head, rest


def test_the_secret_is_added_outside_and_removed_from_answers(world):
    records = []
    with opened(world, github(), records):
        head, body = ask(world, "/echo/x?y=z", extra="Authorization: mine\r\nX-Mine: yes\r\nAccept-Encoding: gzip\r\n"
                                                     "Range: bytes=0-9\r\nIf-Range: \"a\"\r\n")
    path, fields = json.loads(body)
    assert path == "/echo/x?y=z" and b"200" in head.splitlines()[0]
    [(_, _, seen, _)] = [entry for entry in Upstream.seen if entry[1] == path]
    assert [value for name, value in seen if name.lower() == "authorization"] == [SECRET]
    assert ("X-Mine", "yes") in seen and ("Accept-Encoding", "identity") in seen and ("Host", "api.example.org") in seen
    assert not [name for name, _ in seen if "range" in name.lower()], "a secret must not come in pieces"
    assert ["Authorization", "*" * len(SECRET)] in fields
    assert b"X-You-Said: " + b"*" * len(SECRET) in head
    assert TOKEN.encode() not in head + body
    record = only(records)
    assert (record["reason"], record["name"], record["port"], record["method"], record["path"], record["status"],
            record["address"], record["is_tls"]) == ("ALLOWED", "github.endpoint", 80, "GET", "/echo/x", 200, PUBLIC, 1)
    assert record["scrubbed"] >= 2


def test_a_secret_in_pieces_is_found(world):
    with opened(world, github()):
        head, body = ask(world, "/pieces")
    assert body == f"the secret is {'*' * len(SECRET)}!".encode() * 20
    assert TOKEN.encode() not in head and b"X-Trailer" not in head


def test_other_spellings_of_a_secret_are_found(world):
    with opened(world, plain()):
        _, body = ask(world, "/spelled", name="plain")
    assert PASSWORD.encode() not in body and b"dXNlcjpjb" not in body and b"horse" not in body
    with opened(world, github()):
        _, body = ask(world, "/spelled")
    assert b"****" in body and b"0123456789abcdef" not in body, body


def test_a_secret_that_a_server_has_shortened_is_found(world):
    records = []
    with opened(world, github(), records):
        head, body = ask(world, "/shortened")
    assert body == "{}… {}".format("*" * len(SECRET[:-4]), "*" * len(SECRET[:-1])).encode()
    assert b"X-You-Said: " + b"*" * len(SECRET[:-1]) + b"\r\n" in head and only(records)["scrubbed"] >= 3


def test_bodies_go_up_and_down_whole(world):
    body = os.urandom(200000).hex().encode()
    with opened(world, github()):
        assert ask(world, "/up", "POST", extra=f"Content-Length: {len(body)}\r\n", body=body)[1] == b"upstream: 400000"
        assert Upstream.seen[-1][3] == body
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 7001]), body[i:i + 7001]) for i in range(0, len(body), 7001))
        ask(world, "/up", "PUT", extra="Transfer-Encoding: chunked\r\n", body=chunks + b"0\r\n\r\n")
        assert Upstream.seen[-1][0] == "PUT" and Upstream.seen[-1][3] == body
        assert len(ask(world, "/bytes/5000000")[1]) == 5000000
        head, rest = ask(world, "/bytes/77", "HEAD")
        assert b"Content-Length: 77" in head and rest == b""
        ask(world, "/none", "POST", extra="Content-Length: 0\r\n")
        assert Upstream.seen[-1][3] == b""


def test_answers_stream(world):
    with opened(world, plain()):
        peer = world.connect(world.look_up("plain.endpoint"), 80)
        peer.sendall(b"GET /slow HTTP/1.1\r\nHost: plain.endpoint\r\n\r\n")
        got = b""
        while b"one" not in got:
            got += peer.recv(4096)
        assert b"two" not in got
        world.servers[1].go_on.set()
        while block := peer.recv(4096):
            got += block
        assert got.endswith(b"3\r\ntwo\r\n0\r\n\r\n")
        peer.close()


def test_methods_and_paths_are_the_rules(world):
    records = []
    before = len(Upstream.seen)
    with opened(world, github(), records, methods=["GET"], path="/repos/"):
        for method, path in (("POST", "/repos/x"), ("TRACE", "/repos/x"), ("FOO", "/repos/x"), ("GET", "/users"),
                             ("GET", "/repos/../users"), ("GET", "/repos/%2e%2e/users"), ("GET", "/reposx")):
            head, body = ask(world, path, method)
            assert b" 403 " in head and b"do not try other ways" in body
        head, _ = ask(world, "/repos/x", extra="X-HTTP-Method-Override: DELETE\r\nX_Original_URL: /users\r\nAuthori"
                                               "zation: a\r\nauthorization: b\r\n")
    assert [record["reason"] for record in records] == 3 * ["METHOD"] + 4 * ["PATH"] + ["ALLOWED"]
    [(_, path, fields, _)] = Upstream.seen[before:]
    names = [name.lower() for name, _ in fields]
    assert path == "/repos/x" and "x-http-method-override" not in names and "x_original_url" not in names
    assert names.count("authorization") == 1


@pytest.mark.parametrize("field", ["X-Original-Method: DELETE", "X-Forwarded-Uri: /users", "X_Forwarded_Host: other.example.org",
                                   "x-forwarded-prefix: /users", "Forwarded: host=other.example.org", "X-Host: other.example.org"])
def test_proxy_headers_are_not_sent_to_the_upstream(world, field):
    with opened(world, github(), methods=["GET"], path="/repos/"):
        head, _ = ask(world, "/repos/x", extra=f"{field}\r\nX-Kept: yes\r\n")
    names = [name.lower() for name, _ in Upstream.seen[-1][2]]
    assert b" 200 " in head and "x-kept" in names and field.partition(":")[0].lower() not in names


def test_the_path_of_the_upstream_url_cannot_be_left(world):
    with opened(world, github(path="/v1")):
        assert ask(world, "/echo")[1] == b"upstream: 0"
        assert Upstream.seen[-1][1] == "/v1/echo"
        for path in ("/../echo", "/%2e%2e/echo", "/x/..%2f..%2fecho"):
            assert b" 403 " in ask(world, path)[0]


def test_redirects_are_not_followed(world):
    with opened(world, github()):
        before = len(Upstream.seen)
        assert b"Location: http://github.endpoint/echo/there" in ask(world, "/redirect/in")[0]
        assert b"Location: http://github.endpoint/echo/here" in ask(world, "/redirect/path")[0]
        assert b"Location: https://evil.example.org/" in ask(world, "/redirect/out")[0]
        assert b"Location: //evil.example.org/" in ask(world, "/redirect/slash")[0]
        assert len(Upstream.seen) == before + 4
        followed = talk(world.connect("127.0.0.1", 3128), b"GET http://evil.example.org/ HTTP/1.1\r\n\r\n")
        assert b"network.allow has {host: evil.example.org, ports: [80]}" in followed  # the rule that is missing


def test_the_proxy_knows_endpoints_and_tunnels_do_not(world):
    records = []
    with opened(world, github(), records):
        peer = world.connect("127.0.0.1", 3128)
        answer = talk(peer, b"GET http://github.endpoint/echo HTTP/1.1\r\nHost: github.endpoint\r\n\r\n")
        assert b"200" in answer.splitlines()[0] and TOKEN.encode() not in answer
        assert b" 403 " in talk(world.connect("127.0.0.1", 3128), b"CONNECT github.endpoint:80 HTTP/1.1\r\n\r\n")
        assert b" 403 " in talk(world.connect(world.look_up("github.endpoint"), 80),
                                b"GET / HTTP/1.1\r\nHost: api.example.org\r\n\r\n")
    assert [record["reason"] for record in records] == ["ALLOWED", "NO_RULE", "HOST_DIFFERS"]


@pytest.mark.parametrize("path", ["/short", "/gzip", "/twice"])
def test_answers_that_cannot_be_looked_at_are_not_passed_on(world, path):
    records = []
    with opened(world, github(), records):
        head, body = ask(world, path)
    assert only(records)["reason"] == "BROKEN_OFF"
    assert path == "/short" and len(body) < 10 or b" 502 " in head


@pytest.mark.parametrize("endpoint,reason", [
    (github(host="files.example.org"), "NO_SECRET"),        # a policy that sends the secret elsewhere
    (github(port=8443), "NO_SECRET"), (github(is_tls=0), "NO_SECRET"), (github(name="other"), "NO_SECRET"),
    (github(headers=["X-Other"]), "NO_SECRET"),
    (plain(host="private.example.org"), "SPECIAL_ADDRESS"), (plain(host="nowhere.example.org"), "NOT_FOUND"),
    (plain(port=81, headers=[]), "UNREACHABLE"),
    ({"name": "open", "host": "raw.example.org", "port": 443, "is_tls": 1}, "OTHER_NAME"),  # another host's certificate
])
def test_failures_are_reported(world, endpoint, reason):
    records = []
    before = len(Upstream.seen)
    with opened(world, endpoint, records):
        head, body = ask(world, name=endpoint["name"])
    assert only(records)["reason"] == reason and b"X-Glovebox-Reason: " + reason.encode() in head, (head, body)
    assert len(Upstream.seen) == before


def test_an_endpoint_without_credentials_shows_none(world):
    with opened(world, plain(headers=[])):
        ask(world, "/x", name="plain", extra="Authorization: mine\r\n")
    fields = dict(Upstream.seen[-1][2])
    assert fields["Authorization"] == "mine" and "X-Api-Key" not in fields


def test_a_rate_holds_for_all_channels_together(world):
    endpoint = plain(rate=4, name="plain")
    heads = []
    with opened(world, endpoint):
        heads += [ask(world, name="plain")[0] for _ in range(3)]
    with opened(world, endpoint):
        heads += [ask(world, name="plain")[0] for _ in range(2)]
    assert [head.split()[1] for head in heads] == [b"200"] * 4 + [b"429"]


@pytest.fixture
def silent(world):
    """An upstream that takes every connection and never says a word."""
    with world.outside:
        listener = socket.create_server((PUBLIC, 8081), backlog=512)
    yield plain(port=8081, headers=[])
    listener.close()


def begin(world, name="plain", path="/"):
    peer = world.connect(world.look_up(f"{name}.endpoint"), 80)
    peer.sendall(f"GET {path} HTTP/1.1\r\nHost: {name}.endpoint\r\n\r\n".encode())
    return peer


def test_an_upstream_that_is_silent_is_given_up(world, silent):
    """As long as something passes, however slowly, it is not."""
    records = []
    world.servers[1].go_on.clear()
    with opened(world, plain(idle_ms=2500), records), begin(world, path="/drip/6") as slow, begin(world, path="/slow") as half:
        with world.another_sandbox(), opened(world, {**silent, "idle_ms": 1000}, records):
            head, body = ask(world, name="plain")
        assert b" 504 " in head and b"X-Glovebox-Reason: IDLE" in head and b"for as long as the policy allows" in body
        assert b"".join(iter(lambda: slow.recv(4096), b"")).endswith(b"0\r\n\r\n")
        got = b"".join(iter(lambda: half.recv(4096), b""))
        assert got.endswith(b"one\r\n"), "broken off, and so that it can be seen"
    world.servers[1].go_on.set()
    assert sorted((record["path"], record["reason"]) for record in records) == [
        ("/", "IDLE"), ("/drip/6", "ALLOWED"), ("/slow", "IDLE")]


def test_no_sandbox_has_so_many_exchanges_that_another_has_none(world, silent):
    records = []
    with opened(world, silent, records, connections=300):
        peers = [begin(world) for _ in range(140)]
        answered = [peer for peer in peers if select.select([peer], [], [], 0)[0]]
        while len(answered) < 12:
            answered = select.select(peers, [], [], 10)[0]
            assert answered, "more than half of all exchanges"
        with world.another_sandbox(), opened(world, plain(), records):
            assert [ask(world, name="plain")[1] for _ in range(4)] == [b"upstream: 0"] * 4
        assert all(b" 429 " in peer.recv(4096) for peer in answered) and len(answered) == 12
        for peer in peers:
            peer.close()
    assert [record["reason"] for record in records].count("TOO_MANY") == 12


def test_a_run_that_ends_takes_its_requests_with_it(world):
    world.servers[1].go_on.clear()
    with opened(world, plain()):
        peer = world.connect(world.look_up("plain.endpoint"), 80)
        peer.sendall(b"GET /slow HTTP/1.1\r\nHost: plain.endpoint\r\n\r\n")
        while b"one" not in peer.recv(4096):
            pass
    assert peer.recv(4096) == b""
    peer.close()
    world.servers[1].go_on.set()
    with opened(world, plain()):
        assert ask(world, name="plain")[1] == b"upstream: 0"


def test_an_unread_download_is_not_buffered(world):
    with opened(world, plain()):
        peer = world.connect(world.look_up("plain.endpoint"), 80)
        peer.sendall(b"GET /bytes/200000000 HTTP/1.1\r\nHost: plain.endpoint\r\n\r\n")
        time.sleep(1)
        with open(f"/proc/{world.process.pid}/status", encoding="ascii") as file:
            [resident] = [int(line.split()[1]) for line in file if line.startswith("VmRSS")]
        peer.close()
    assert resident < 64 * 1024, resident


@pytest.mark.parametrize("change,words", [
    ({"mode": 0o640}, "has mode 0640, others may use it; chmod 600 it"), ({"owner": 1234}, "belongs to user 1234"),
    ({"text": "github: {url: https://api.example.org}"}, "it needs a url, and headers"),
    ({"text": "github: {url: https://10.1, headers: {Authorization: 0123456789}}"}, "no URL"),
    ({"text": "github: {url: https://api.example.org, headers: {Host: 0123456789}}"}, "no header that can be added"),
    ({"text": "github: {url: https://api.example.org, headers: {Authorization: short}}"}, "a secret has 8 to"),
    ({"text": "github: {url: https://api.example.org, headers: {Authorization: Bearer abc123}}"}, "has less than 8 bytes"),
    ({"text": "github: {url: https://api.example.org, headers: {Authorization: Basic dXNlcjpwYXNz}}"}, "has less than 8"),
    ({"text": "github: {link: x}"}, "unknown key"), ({"text": "- x"}, "no mapping")])
def test_a_secrets_file_that_is_not_right_ends_it(tmp_path, change, words):
    from conftest import BUILD
    if os.geteuid() != 0:
        pytest.skip("needs root: files of other users")
    path = secrets_file(tmp_path, **{"text": SECRETS, **change})
    with open(path, "rb") as file:
        done = subprocess.run([BUILD / "glovebox-egress", "--daemon", "3", "--secrets", f"{file.fileno()}={path}"],
                              pass_fds=[file.fileno()], user=65534, group=65534, extra_groups=[], capture_output=True,
                              text=True, timeout=20, check=False)
    assert done.returncode == 78 and str(path) in done.stderr and words in done.stderr
    assert TOKEN not in done.stderr and len(done.stderr.splitlines()) == 1

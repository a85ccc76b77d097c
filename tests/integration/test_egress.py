"""glovebox-egress, attacked from inside a sandbox with known ways to bypass such proxies (egress_rig.py)."""

import os
import shutil
import socket
import ssl
import struct
import threading
import time

import pytest

from egress_rig import PUBLIC, Egress
from internet import SIX, EchoServer, NameServer, Web, certificate, close_server, serve_web

@pytest.fixture(scope="module")
def world(tmp_path_factory):
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("needs root and iproute2: network namespaces")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = certificate(folder)
    egress = Egress(f"{PUBLIC}:53")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    names = NameServer(egress.outside)
    kept = [serve_web(egress.outside, 80), serve_web(egress.outside, 8080), serve_web(egress.outside, 443, context),
            EchoServer(egress.outside, 5432), EchoServer(egress.outside, 22)]
    egress.names, egress.cert = names, cert
    yield egress
    egress.close()
    names.close()
    for server in kept:
        close_server(server)


WEB = {"host": "api.example.org", "ports": [80]}
TLS = {"host": "api.example.org", "ports": [443]}


def talk(peer, request):
    """Sends, and reads to the end."""
    with peer:
        peer.sendall(request)
        got = b""
        try:
            while block := peer.recv(65536):
                got += block
        except ConnectionResetError:
            pass
    return got


def get(world, name="api.example.org", path="/", port=80, extra="", method="GET", address=None):
    peer = world.connect(address or world.look_up(name), port)
    return talk(peer, f"{method} {path} HTTP/1.1\r\nHost: {name}\r\n{extra}\r\n".encode())


def answers(peer):
    """True if the server speaks, False if the connection ends."""
    try:
        return peer.recv(100) != b""
    except ConnectionResetError:
        return False


def wait_for_record(world):
    """A tunnel is over when both of its ends are, which its client is not told; its record is sent at that moment. What
    comes before it says that a connection has begun."""
    while not world.hear():
        pass


def only(records):
    assert len(records) == 1, records
    return records[0]


class TestNames:
    def test_an_allowed_name_has_an_address(self, world):
        with world.channel([WEB]):
            code, addresses = world.ask("api.example.org")
            assert code == 0 and addresses[0].startswith("198.18.")
            assert world.ask("API.Example.ORG.") == (0, addresses)
            assert world.ask("api.example.org", tcp=True) == (0, addresses)
            assert world.ask("api.example.org", kind=28) == (0, [])

    def test_other_names_are_refused_and_reported(self, world):
        records = []
        before = len(world.names.asked)
        with world.channel([WEB], records):
            assert world.ask("evil.example.org")[0] == 5
            assert world.ask("x" * 60 + ".api.example.org")[0] == 5  # what would carry data out
            assert world.ask("api.example.org", kind=16)[0] == 5
        assert [record["reason"] for record in records] == ["NO_RULE", "NO_RULE", "DNS_TYPE"]
        assert len(world.names.asked) == before, "a question of the sandbox went out"

    @pytest.mark.parametrize("raw", [b"\x03a\0b\x03org\0", b"\x0bapi.example\x03org\0", b"\x04a%2f\x03org\0", b"\xc0\x0c",
                                     b"\x3f" + b"a" * 20, b"\x02\xc3\xa4\x03org\0", b"\0"])
    def test_names_that_are_none(self, world, raw):
        records = []
        with world.channel([{"host": "*.org"}], records):
            try:
                assert world.ask("", raw=raw)[0] == 5
            except socket.timeout:
                pass  # no question at all
        assert all(record["reason"] == "BAD_NAME" for record in records)

    def test_wildcards_are_labels_below(self, world):
        with world.channel([{"host": "*.files.example.org"}]):
            assert world.ask("deep.files.example.org")[0] == 0
            assert world.ask("files.example.org")[0] == 5
            assert world.ask("evilfiles.example.org")[0] == 5


class TestHttp:
    def test_an_allowed_request_passes(self, world):
        records = []
        with world.channel([WEB], records):
            assert get(world).endswith(b"hello from api.example.org")
        record = only(records)
        assert (record["reason"], record["name"], record["port"], record["method"], record["path"], record["status"]) == (
            "ALLOWED", "api.example.org", 80, "GET", "/", 200)
        assert record["address"] == PUBLIC and record["received"] > 40 and record["label"] == 0

    def test_bodies_pass_whole(self, world):
        with world.channel([WEB]):
            body = os.urandom(300000).hex().encode()
            head = f"POST /up HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            assert b" 200 " in talk(world.connect(world.look_up("api.example.org"), 80), head + body)
            assert Web.seen[-1][3] == body
            chunks = b"".join(b"%x;x=y\r\n%s\r\n" % (len(body[i:i + 7001]), body[i:i + 7001]) for i in range(0, len(body), 7001))
            head = b"POST /up HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding: chunked\r\n\r\n"
            answer = talk(world.connect(world.look_up("api.example.org"), 80), head + chunks + b"0\r\nTrailer: x\r\n\r\n")
            assert b" 200 " in answer and Web.seen[-1][3] == body

    def test_methods_and_paths(self, world):
        rule = {"host": "api.example.org", "ports": [80], "methods": ["GET"], "path": "/repos/"}
        records = []
        with world.channel([rule], records):
            assert b"hello" in get(world, path="/repos/a?b=c")
            assert b"403" in get(world, path="/repos/a", method="DELETE").split(b"\r\n")[0]
            for path in ("/", "/repos", "/reposx/", "/repos/../admin", "/repos/%2e%2e/admin", "/repos/..%2fadmin",
                         "/repos/.%2e/x", "/repos/..;/admin", "/%72epos/", "//repos/"):
                assert b"403" in get(world, path=path).split(b"\r\n")[0], path
        assert [record["reason"] for record in records] == ["ALLOWED", "METHOD"] + ["PATH"] * 10

    def test_a_refusal_has_a_sentence(self, world):
        with world.channel([WEB, {"host": "files.example.org", "ports": [443]}]):
            answer = get(world, name="files.example.org")
            assert b"HTTP/1.1 403" in answer and b"do not try other ways" in answer and b"X-Glovebox-Reason: NO_RULE" in answer

    def test_the_request_is_written_anew(self, world):
        with world.channel([WEB]):
            get(world, extra="Connection: x-secret, keep-alive\r\nX-Secret: 1\r\nProxy-Authorization: a\r\nTE: trailers\r\nX-Kept: 2\r\n")
            headers = Web.seen[-1][2]
            assert headers["X-Kept"] == "2" and headers["Connection"] == "close" and "X-Secret" not in headers
            assert "Proxy-Authorization" not in headers and "TE" not in headers

    @pytest.mark.parametrize("request_bytes", [
        b"GET / HTTP/1.1\r\nHost: evil.example.org\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org\r\nHost: evil.example.org\r\n\r\n",
        b"GET http://evil.example.org/ HTTP/1.1\r\nHost: api.example.org\r\n\r\n",
        b"GET http://api.example.org@evil.example.org/ HTTP/1.1\r\nHost: api.example.org\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org:8080\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"POST / HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 5, 5\r\n\r\nabcde",
        b"POST / HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: +5\r\n\r\nabcde",
        b"POST / HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding: xchunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding : chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org\r\n X: folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org\nX: bare\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org\r\nX: a\rb\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org\r\nX: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org\0.evil.example.org\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org%00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org\\@evil\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: api.example。org\r\n\r\n".encode(),
        b"GET / HTTP/2.0\r\nHost: api.example.org\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: api.example.org\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: api.example.org\r\n\r\n",
        b"GET ftp://api.example.org/ HTTP/1.1\r\nHost: api.example.org\r\n\r\n",
        b"CONNECT api.example.org:80 HTTP/1.1\r\nHost: api.example.org:80\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org\r\n" + b"X: y\r\n" * 70 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org\r\nX: " + b"y" * 40000 + b"\r\n\r\n",
        b"\x16\x03\x01\x00\x05hello",
        b"\r\n\r\nGET / HTTP/1.1\r\nHost: api.example.org\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.0\r\nHost: api.example.org\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 0x5\r\n\r\nabcde",
        b"POST / HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 18446744073709551617\r\n\r\na",
        b"POST / HTTP/1.1\r\nHost: api.example.org\r\nContent-Length:\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : api.example.org\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org\r\nContent-Length\r\n\r\n",
        b"GET / HTTP/1.1\nHost: api.example.org\n\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org, evil.example.org\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: evil.example.org#api.example.org\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org..\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org:80:81\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 93.184.216.34\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: [::ffff:93.184.216.34]\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: xn--api-.example.org\r\n\r\n",
        b"GET //evil.example.org/ HTTP/1.1\r\nHost: evil.example.org\r\n\r\n",
        b"GET api.example.org/ HTTP/1.1\r\nHost: api.example.org\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: evil.example.org\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n",
    ])
    def test_what_could_be_read_in_two_ways_is_refused(self, world, request_bytes):
        records, before = [], len(Web.seen)
        with world.channel([WEB], records):
            answer = talk(world.connect(world.look_up("api.example.org"), 80), request_bytes)
        assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 403", b"HTTP/1.1 431"), answer
        assert len(Web.seen) == before, "it reached the server"
        assert only(records)["reason"] != "ALLOWED"

    def test_one_request_a_connection(self, world):
        before = len(Web.seen)
        with world.channel([WEB]):
            one = b"GET /one HTTP/1.1\r\nHost: api.example.org\r\n\r\n"
            answer = talk(world.connect(world.look_up("api.example.org"), 80), one + one.replace(b"one", b"two"))
        assert answer.count(b"hello from") == 1 and len(Web.seen) == before + 1

    def test_bad_chunks_end_the_connection(self, world):
        records, before = [], len(Web.seen)
        head = b"POST / HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding: chunked\r\n\r\n"
        with world.channel([WEB], records):
            for body in (b"zz\r\n", b"-1\r\n", b"5\nabcde\r\n", b"5\r\nabcdeXX0\r\n\r\n", b"fffffffffffffffff\r\n"):
                talk(world.connect(world.look_up("api.example.org"), 80), head + body)
        assert len(Web.seen) == before

    @pytest.mark.parametrize("field,body,reason", [("Transfer-Encoding: chunked", b"zz\r\n", "BAD_REQUEST"),
                                                   ("Content-Length: 10", None, "ALLOWED")])
    def test_a_body_that_breaks_off_ends_its_connection(self, world, field, body, reason):
        """The server waits for the rest of it for ever; nobody waits with it."""
        records = []
        with world.channel([WEB], records):
            with world.connect(world.look_up("api.example.org"), 80) as peer:
                peer.sendall(f"POST / HTTP/1.1\r\nHost: api.example.org\r\n{field}\r\n\r\n5\r\nab".encode())
                time.sleep(0.2)  # it has reached the server, most likely
                if body:
                    peer.sendall(b"cde\r\n" + body)
                else:
                    peer.shutdown(socket.SHUT_WR)
                answer = peer.recv(4096)
            assert answer == b"" if reason == "ALLOWED" else b"400" in answer and b"BAD_REQUEST" in answer, answer
        assert only(records)["reason"] == reason


class TestTls:
    def handshake(self, world, sni="api.example.org", name="api.example.org", verify=True, through=None):
        context = ssl.create_default_context(cafile=str(world.cert))
        if not verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        peer = through or world.connect(world.look_up(name), 443)
        with context.wrap_socket(peer, server_hostname=sni) as secure:
            return talk(secure, f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())

    def test_the_same_name_passes_end_to_end(self, world):
        records = []
        with world.channel([TLS], records):
            assert self.handshake(world).endswith(b"hello from api.example.org")
            wait_for_record(world)
        record = only(records)
        assert (record["reason"], record["is_tls"], record["port"]) == ("ALLOWED", 1, 443)

    @pytest.mark.parametrize("sni, reason", [("files.example.org", "SNI_DIFFERS"), ("evil.example.org", "SNI_DIFFERS"),
                                             (None, "NO_SNI")])
    def test_another_name_in_the_greeting(self, world, sni, reason):
        records = []
        with world.channel([TLS], records):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                self.handshake(world, sni=sni, verify=False)
        assert only(records)["reason"] == reason

    def test_a_greeting_in_pieces(self, world):
        outgoing, incoming = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context(cafile=str(world.cert))
        client = context.wrap_bio(incoming, outgoing, server_hostname="api.example.org")
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        hello = outgoing.read()
        record, body = hello[:3], hello[5:]
        parts = b"".join(record + struct.pack(">H", len(body[i:i + 40])) + body[i:i + 40] for i in range(0, len(body), 40))
        with world.channel([TLS]):
            for sent in (hello, parts):
                with world.connect(world.look_up("api.example.org"), 443) as peer:
                    for i in range(0, len(sent), 17):
                        peer.sendall(sent[i:i + 17])
                    assert peer.recv(1) == b"\x16"

    @pytest.mark.parametrize("greeting", [b"GET / HTTP/1.1\r\nHost: api.example.org\r\n\r\n", b"SSH-2.0-x\r\n",
                                          b"\x16\x03\x01\x00\x04\x02\x00\x00\x00", b"\x80\x2e\x01\x03\x01"])
    def test_only_tls_passes_on_443(self, world, greeting):
        records = []
        with world.channel([TLS], records):
            talk(world.connect(world.look_up("api.example.org"), 443), greeting)
        assert only(records)["reason"] == "NO_TLS"


class TestProxy:
    def request(self, world, request):
        return talk(world.connect("127.0.0.1", 3128), request)

    def test_connect(self, world):
        records = []
        with world.channel([TLS], records):
            peer = world.connect("127.0.0.1", 3128)
            peer.sendall(b"CONNECT api.example.org:443 HTTP/1.1\r\nHost: api.example.org:443\r\n\r\n")
            assert peer.recv(4096).startswith(b"HTTP/1.1 200")
            assert TestTls().handshake(world, through=peer).endswith(b"hello from api.example.org")
            wait_for_record(world)
        assert only(records)["reason"] == "ALLOWED" and only(records)["way"] == 1

    def test_absolute_form(self, world):
        with world.channel([WEB, {"host": "api.example.org", "ports": [8080]}]):
            for where in ("api.example.org", "API.example.org.", "api.example.org:8080"):
                request = f"GET http://{where}/x HTTP/1.1\r\nHost: {where}\r\n\r\n".encode()
                assert b"hello from api.example.org" in self.request(world, request), where

    @pytest.mark.parametrize("host, way", [("api.example.org", "ALLOWED"), ("files.example.org", "HOST_DIFFERS"),
                                           ("evil.example.org", "HOST_DIFFERS"), ("api.example.org:8080", "HOST_DIFFERS")])
    def test_a_tunnel_to_a_port_of_http_carries_a_request_for_that_host(self, world, host, way):
        records, before = [], len(Web.seen)
        head = b"CONNECT api.example.org:80 HTTP/1.1\r\nHost: api.example.org:80\r\n\r\n"
        inner = f"GET /in HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        with world.channel([WEB, {"host": "files.example.org", "ports": [80]}], records):
            at_once = self.request(world, head + inner)
            peer = world.connect("127.0.0.1", 3128)
            peer.sendall(head)
            assert peer.recv(4096).startswith(b"HTTP/1.1 200")
            later = talk(peer, inner)
        passed = way == "ALLOWED"
        assert (b"hello from api.example.org" in at_once, b"hello from api.example.org" in later) == (passed, passed)
        assert len(Web.seen) == before + (2 if passed else 0), "it reached the server"
        assert [record["reason"] for record in records] == [way] * 2

    @pytest.mark.parametrize("target, host", [
        ("http://evil.example.org/", "api.example.org"), ("http://api.example.org:8080/", "api.example.org"),
        ("http://api.example.org@evil.example.org/", "evil.example.org"), ("http://evil.example.org?.api.example.org/", "x"),
        ("http://api.example.org\\.evil.example.org/", "api.example.org"), ("http://127.0.0.1/", "api.example.org"),
        ("http://2130706433/", "api.example.org"), ("http://0x5db8d822/", "api.example.org"), ("http://[::1]/", "[::1]"),
        ("http://[fe80::1%25lo]/", "api.example.org"), ("http://0135.0270.0330.042/", "api.example.org"),
        ("http://api.example.org%00.evil.example.org/", "api.example.org"), ("https://api.example.org/", "api.example.org"),
        ("http://аpi.example.org/", "api.example.org"), ("http:///x", "api.example.org"), ("//api.example.org/", "api.example.org"),
        ("/", "api.example.org"), ("*", "api.example.org")])
    def test_absolute_forms_that_mean_another_host(self, world, target, host):
        records, before = [], len(Web.seen)
        with world.channel([WEB], records):
            answer = self.request(world, f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 403"), answer
        assert len(Web.seen) == before and only(records)["reason"] != "ALLOWED"

    def test_the_target_counts_and_not_the_host_header(self, world):
        records = []
        with world.channel([WEB], records):
            answer = self.request(world, b"GET http://api.example.org/x HTTP/1.1\r\nHost: evil.example.org\r\n\r\n")
        assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 403") or Web.seen[-1][2]["Host"] == "api.example.org"
        assert only(records)["name"] in ("api.example.org", "")

    def test_a_tunnel_in_a_tunnel_is_refused(self, world):
        records = []
        head = b"CONNECT api.example.org:80 HTTP/1.1\r\nHost: api.example.org:80\r\n\r\n"
        with world.channel([WEB], records):
            assert b"HTTP/1.1 400" in self.request(world, head + head)
        assert only(records)["reason"] == "BAD_REQUEST"

    @pytest.mark.parametrize("where", ["evil.example.org:443", "api.example.org:22", "api.example.org.evil.org:443",
                                       "xapi.example.org:443", PUBLIC + ":443", "127.0.0.1:443", "[::1]:443", "0x7f.1:443",
                                       "2130706433:443", "0177.0.0.1:443", "127.1:443", "[::ffff:127.0.0.1]:443",
                                       "api.example.org%2eevil.org:443", "localhost:443", "api..example.org:443",
                                       "-api.example.org:443", "api.example.org:0443443", "api.example.org:0", "api.example.org"])
    def test_connect_to_what_is_not_allowed(self, world, where):
        records = []
        with world.channel([TLS], records):
            answer = self.request(world, f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
        assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 403"), answer
        assert only(records)["reason"] in ("NO_RULE", "LITERAL", "BAD_NAME", "BAD_REQUEST")

    def test_the_greeting_must_name_what_was_connected_to(self, world):
        records = []
        with world.channel([TLS, {"host": "files.example.org"}], records):
            peer = world.connect("127.0.0.1", 3128)
            peer.sendall(b"CONNECT api.example.org:443 HTTP/1.1\r\nHost: api.example.org:443\r\n\r\n")
            assert peer.recv(4096).startswith(b"HTTP/1.1 200")
            with pytest.raises((ssl.SSLError, ConnectionError)):
                TestTls().handshake(world, sni="files.example.org", through=peer)
        assert only(records)["reason"] == "SNI_DIFFERS"


class TestAddresses:
    @pytest.mark.parametrize("name", ["private", "loop", "meta", "zero", "shared", "own", *[name.split(".")[0] for name in SIX]])
    def test_names_that_lead_home(self, world, name):
        records = []
        with world.channel([{"host": "*.example.org", "ports": [80]}], records):
            answer = get(world, name=f"{name}.example.org")
        assert b"HTTP/1.1 403" in answer
        assert only(records)["reason"] == "SPECIAL_ADDRESS"

    def test_a_name_that_changes_its_mind(self, world):
        """What was checked is what is connected to; the next look-up is checked anew."""
        records = []
        with world.channel([{"host": "rebinds.example.org", "ports": [80]}], records):
            for _ in range(3):
                get(world, name="rebinds.example.org")
        assert {record["reason"] for record in records} <= {"ALLOWED", "SPECIAL_ADDRESS"}
        assert {record["address"] for record in records if record["reason"] == "ALLOWED"} <= {PUBLIC}
        assert records[-1]["reason"] == "SPECIAL_ADDRESS"

    @pytest.mark.parametrize("address", [PUBLIC, "8.8.8.8", "169.254.169.254", "10.0.0.1", "198.18.9.9", "::1",
                                         "2606:2800:220:1::1", "::ffff:93.184.216.34"])
    def test_numbers_are_not_names(self, world, address):
        records = []
        with world.channel([WEB, {"host": "*.org"}], records):
            answer = get(world, address=address)
        assert b"HTTP/1.1 403" in answer and only(records)["reason"] == "LITERAL"

    def test_a_network_that_the_operator_opened(self, world):
        records = []
        with world.channel([{"network": f"{PUBLIC}/32", "ports": [5432]},
                            {"host": "opened.example.org", "network": "93.184.216.0/24", "ports": [22]}], records,
                           ports=(22, 5432)):
            with world.connect(PUBLIC, 5432) as peer:
                assert peer.recv(100) == b"welcome\n"
            with world.connect(world.look_up("opened.example.org"), 22) as peer:
                assert peer.recv(100) == b"welcome\n"
            with world.connect("93.184.216.35", 5432) as peer:
                assert peer.recv(1) == b""
        assert sorted(record["reason"] for record in records)[-1] == "LITERAL" and len(records) == 3

    def test_ports_that_no_rule_names_refuse_at_once(self, world):
        with world.channel([WEB], ports=(80,)):
            begin = time.monotonic()
            with pytest.raises(ConnectionRefusedError):
                world.connect(world.look_up("api.example.org"), 22)
            assert time.monotonic() - begin < 2


class TestBounds:
    def test_raw_bytes_both_ways(self, world):
        rule = {"host": "raw.example.org", "ports": [5432]}
        with world.channel([rule], ports=(5432,)):
            with world.connect(world.look_up("raw.example.org"), 5432) as peer:
                assert peer.recv(100) == b"welcome\n"
                data = os.urandom(3 << 20)
                threading.Thread(target=lambda: (peer.sendall(data), peer.shutdown(socket.SHUT_WR))).start()
                got = b""
                while block := peer.recv(1 << 20):
                    got += block
                assert got == data

    def test_connections_at_once(self, world):
        records = []
        with world.channel([{"host": "raw.example.org", "ports": [5432]}], records, ports=(5432,), connections=4):
            address = world.look_up("raw.example.org")
            peers = [world.connect(address, 5432) for _ in range(4)]
            assert all(peer.recv(100) for peer in peers)
            with world.connect(address, 5432) as fifth:
                try:
                    assert fifth.recv(100) == b""
                except ConnectionResetError:
                    pass
            for peer in peers:
                peer.close()
        assert [record["reason"] for record in records].count("TOO_MANY") == 1

    def test_bytes_sent(self, world):
        records = []
        with world.channel([{"host": "raw.example.org", "ports": [5432]}], records, ports=(5432,), sent=100000):
            with world.connect(world.look_up("raw.example.org"), 5432) as peer:
                with pytest.raises((ConnectionError, BrokenPipeError)):
                    for _ in range(100):
                        peer.sendall(bytes(65536))
                        time.sleep(0.01)
        assert only(records)["reason"] == "SENT_TOO_MUCH" and only(records)["sent"] == 100000

    def test_bytes_received(self, world):
        records = []
        with world.channel([WEB], records, received=50000):
            assert len(get(world, path="/bytes/1000000")) <= 50000
        assert only(records)["reason"] == "RECEIVED_TOO_MUCH"

    def test_time(self, world):
        records = []
        with world.channel([{"host": "raw.example.org", "ports": [5432]}], records, ports=(5432,), duration_ms=300):
            with world.connect(world.look_up("raw.example.org"), 5432) as peer:
                while peer.recv(100):
                    pass
        assert only(records)["reason"] == "TOO_LONG"

    def test_slow_requests_end(self, world):
        """Half a head, half a greeting, a tunnel through which nothing comes, no byte at all: five seconds each."""
        records = []
        with world.channel([WEB, TLS], records):
            address = world.look_up("api.example.org")
            head, greeting, tunnel, silent = (world.connect(*to, timeout=15) for to in (
                (address, 80), (address, 443), ("127.0.0.1", 3128), ("127.0.0.1", 3128)))
            with head, greeting, tunnel, silent:
                head.sendall(b"GET / HTTP/1.1\r\nHo")
                greeting.sendall(b"\x16\x03\x01\x02\x00\x01")
                tunnel.sendall(b"CONNECT api.example.org:443 HTTP/1.1\r\n\r\n")
                assert tunnel.recv(4096).startswith(b"HTTP/1.1 200")
                for beat in range(12):  # a byte now and then is no reason to wait longer
                    time.sleep(0.3)
                    head.sendall(b"x")
                assert b"408" in head.recv(4096) and b"408" in silent.recv(4096)
                assert greeting.recv(16)[:1] == tunnel.recv(16)[:1] == b"\x15"
        assert [record["reason"] for record in records] == ["TOO_SLOW"] * 4

    def test_one_sandbox_does_not_use_up_all_connections(self, world):
        """With 1,024 descriptors there are 64 connections, of which a quarter is for those who have few."""
        raw, terms = {"network": f"{PUBLIC}/32", "ports": [5432]}, {"ports": (5432,), "connections": 1024}
        small = Egress(f"{PUBLIC}:53", files=1024)
        server = EchoServer(small.outside, 5432)
        try:
            with small.channel([raw], **terms):
                peers = [small.connect(PUBLIC, 5432) for _ in range(80)]
                assert [answers(peer) for peer in peers] == [True] * 48 + [False] * 32
                with small.another_sandbox(), small.channel([raw], **terms):
                    others = [small.connect(PUBLIC, 5432) for _ in range(8)]
                    assert all(answers(peer) for peer in others), "somebody else has no room"
                    for peer in peers + others:
                        peer.close()
        finally:
            server.close()
            small.close()

    def test_channels_do_not_know_each_other(self, world):
        first, second = [], []
        one = world.open([WEB])
        address = world.look_up("api.example.org")
        first += world.end(one)
        with world.channel([{"host": "files.example.org", "ports": [80]}], second):
            assert b"HTTP/1.1 403" in get(world, address=address)  # an address of another run
        assert only(second)["reason"] == "LITERAL"

    def test_an_end_ends_its_connections(self, world):
        number = world.open([{"host": "raw.example.org", "ports": [5432]}], ports=(5432,))
        peer = world.connect(world.look_up("raw.example.org"), 5432)
        assert peer.recv(100)
        records = world.end(number)
        try:
            assert peer.recv(100) == b""
        except ConnectionResetError:
            pass
        peer.close()
        assert only(records)["reason"] == "ENDED"
        with pytest.raises(ConnectionRefusedError):
            world.connect("127.0.0.1", 3128)

"""TLS that is intercepted: glovebox-egress alone, between code that trusts what a channel was given and hosts whose
certificates the test has made. What another program would have to be told by a network, the test says itself."""

import contextlib
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import time

import pytest

from egress_rig import CLOSE, PUBLIC, Egress
from internet import NAMES, NameServer, Web, close_server, serve_web

HOST = "api.example.org"
RULES = [{"host": HOST, "ports": [443, 8443], "path": "/repos/", "methods": ["GET", "POST"], "intercept": True},
         {"host": "files.example.org", "ports": [443]},
         {"host": "*.wide.example.org", "ports": [443], "intercept": True},
         {"host": "raw.example.org", "ports": [443, 8443], "intercept": True}]
PORTS = (443, 8443)


class Authority:
    """What the host of glovebox-egress trusts, made by openssl."""

    def __init__(self, folder):
        self.folder = folder
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-keyout",
                 "ca.key", "-out", "ca.pem", "-subj", "/CN=the test's own authority")

    def run(self, *words):
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)

    def context(self, name, *names, expired=False):
        """A server's, with a certificate for these names."""
        (self.folder / f"{name}.ext").write_text("subjectAltName=" + ",".join(f"DNS:{one}" for one in names))
        self.run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out",
                 f"{name}.csr", "-subj", f"/CN={name}")
        self.run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile",
                 f"{name}.ext", "-out", f"{name}.pem", "-days", "-1" if expired else "2")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        return context


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("needs root and iproute2: network namespaces")
    folder = tmp_path_factory.mktemp("tls")
    trusted = Authority(folder)
    names = {f"n{i}.wide.example.org": PUBLIC for i in range(60)} | {"a.wide.example.org": PUBLIC}
    NAMES.update(names)
    good = trusted.context("good", HOST, "files.example.org", "raw.example.org")
    bad = trusted.context("bad", "other.example.org")
    old = trusted.context("old", "raw.example.org", expired=True)
    bad.sni_callback = lambda ssl_object, name, _: setattr(ssl_object, "context", old) if name == "raw.example.org" else None
    (folder / "ca.pem").chmod(0o644)
    egress = Egress(f"{PUBLIC}:53", ca_file=folder / "ca.pem")
    servers = [NameServer(egress.outside), serve_web(egress.outside, 443, good), serve_web(egress.outside, 8443, bad)]
    egress.folder = folder
    with egress.another_sandbox():
        egress.slow_channel = egress.open(RULES, ports=PORTS)
        egress.slow = begin_slowly(egress)
    yield egress
    for name in names:
        del NAMES[name]
    egress.close()
    for server in servers:
        close_server(server)
    Web.seen.clear()  # others look at it as well


def trusting(egress, protocols=()):
    context = ssl.create_default_context(cadata=egress.authority)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


def connect(egress, name=HOST, port=443, context=None, sni=None):
    peer = egress.connect(egress.look_up(name), port)
    return (context or trusting(egress)).wrap_socket(peer, server_hostname=sni or name)


def ask(egress, path="/repos/x", name=HOST, host=None, method="GET", **how):
    with connect(egress, name, **how) as peer:
        peer.sendall(f"{method} {path} HTTP/1.1\r\nHost: {host or name}\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: peer.recv(65536), b"")).decode()


def test_a_request_within_tls_is_held_to_its_rule(world):
    records = []
    with world.channel(RULES, records, ports=PORTS):
        assert "hello from api.example.org" in ask(world)
        assert ask(world, "/repos/../secret").startswith("HTTP/1.1 403 ")
        refused = ask(world, "/user?token=x")
        assert refused.startswith("HTTP/1.1 403 ") and "does not allow this path here" in refused and "other ways" in refused
        refused = ask(world, method="DELETE")
        assert refused.startswith("HTTP/1.1 403 ") and "does not allow this method here" in refused
    assert [(one["reason"], one["label"], one["method"], one["path"], one["status"], one["is_tls"], one["is_intercepted"])
            for one in records] == [
        ("ALLOWED", 0, "GET", "/repos/x", 200, 1, 1), ("PATH", 0xffff, "GET", "/repos/../secret", 0, 1, 1),
        ("PATH", 0xffff, "GET", "/user", 0, 1, 1), ("METHOD", 0xffff, "DELETE", "/repos/x", 0, 1, 1)]


def test_the_forwarded_request_is_written_anew(world):
    with world.channel(RULES, ports=PORTS):
        Web.seen.clear()
        with connect(world) as peer:
            peer.sendall(b"POST /repos/y?q=1 HTTP/1.1\r\nhost: API.example.org\r\nTransfer-Encoding: chunked\r\nConnection: close, x-hop\r\n"
                         b"X-Hop: 1\r\nAccept-Encoding: br\r\nX-Own: 1\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
            assert b"hello from api.example.org" in b"".join(iter(lambda: peer.recv(65536), b""))
        [(method, path, fields, body)] = Web.seen
        assert (method, path, body) == ("POST", "/repos/y?q=1", b"abc")
        fields = {name.lower(): value for name, value in fields.items()}
        assert fields["host"] == HOST and fields["x-own"] == "1" and "x-hop" not in fields and fields["accept-encoding"] == "br"


def test_what_is_not_intercepted_stays_opaque(world):
    records = []
    with world.channel(RULES, records, ports=PORTS):
        with pytest.raises(ssl.SSLCertVerificationError):
            connect(world, "files.example.org").close()
        end_to_end = ssl.create_default_context(cafile=world.folder / "ca.pem")
        assert "hello from files.example.org" in ask(world, "/anything", "files.example.org", context=end_to_end)
    assert [(one["method"], one["is_tls"], one["is_intercepted"]) for one in records] == 2 * [("", 1, 0)]
    # The end of the channel may come before the server has closed the last of them.
    assert [one["reason"] for one in records] in (["ALLOWED", "ALLOWED"], ["ALLOWED", "ENDED"])


@pytest.mark.parametrize("name, words, reason", [(HOST, "names another host", "OTHER_NAME"),
                                                 ("raw.example.org", "has expired", "OUT_OF_DATE")])
def test_the_host_must_prove_itself(world, name, words, reason):
    records = []
    with world.channel([{"host": name, "ports": [8443], "intercept": True}], records, ports=PORTS):
        answer = ask(world, name=name, port=8443, host=f"{name}:8443")
        assert answer.startswith("HTTP/1.1 502 ") and words in answer, answer
    assert [one["reason"] for one in records] == [reason]


def test_a_host_with_an_untrusted_certificate_is_refused(world, tmp_path):
    records = []
    stranger = Authority(tmp_path).context("stranger", HOST)
    server = serve_web(world.outside, 9443, stranger)
    try:
        with world.channel([{"host": HOST, "ports": [9443], "intercept": True}], records, ports=(9443,)):
            answer = ask(world, port=9443, host=f"{HOST}:9443")
            assert answer.startswith("HTTP/1.1 502 ") and "certificate is not trusted" in answer, answer
    finally:
        close_server(server)
    assert [one["reason"] for one in records] == ["NO_TRUST"]


def test_a_client_without_the_runs_ca_is_distinguished(world):
    records = []
    with world.channel(RULES, records, ports=PORTS):
        for context in (ssl.create_default_context(cafile=world.folder / "ca.pem"), ssl.create_default_context()):
            with pytest.raises(ssl.SSLCertVerificationError):
                connect(world, context=context)
        connect(world).close()  # as one that pins a certificate and looks at it after the handshake
        settle(world, records)
    assert [one["reason"] for one in records] == 3 * ["NOT_BELIEVED"]


def settle(world, records):
    """The ends that lie on their way are heard before the channel is closed: each answer is a turn of its loop."""
    for _ in range(8):
        world.look_up(HOST)
    assert records == []


def test_names_must_agree(world):
    records = []
    with world.channel(RULES, records, ports=PORTS):
        with pytest.raises(ssl.SSLError):  # SNI ≠ the name that was looked up
            connect(world, sni="raw.example.org", context=trusting(world))
        answer = ask(world, host="raw.example.org")  # Host ≠ SNI, though another rule allows it
        assert answer.startswith("HTTP/1.1 403 ") and "Host header names another host" in answer
        answer = ask(world, path="http://raw.example.org/repos/x")
        assert answer.startswith("HTTP/1.1 403 "), answer
    assert [one["reason"] for one in records] == ["SNI_DIFFERS", "HOST_DIFFERS", "HOST_DIFFERS"]


def test_connect_leads_to_the_same_rules(world):
    records = []
    with world.channel(RULES, records, ports=PORTS):
        def tunnel(to):
            peer = world.connect("127.0.0.1", 3128)
            peer.sendall(f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n".encode())
            return peer, peer.recv(4096).decode()
        for path, status in (("/repos/x", 200), ("/user", 403)):
            peer, said = tunnel(f"{HOST}:443")
            assert said.startswith("HTTP/1.1 200 ")
            with trusting(world).wrap_socket(peer, server_hostname=HOST) as inner:
                inner.sendall(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
                assert inner.recv(4096).decode().startswith(f"HTTP/1.1 {status} ")
        peer, _ = tunnel(f"{HOST}:443")
        with pytest.raises(ssl.SSLError):
            trusting(world).wrap_socket(peer, server_hostname="raw.example.org")
        peer, _ = tunnel(f"{HOST}:443")
        peer.sendall(f"GET /repos/x HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())  # plain, where TLS is expected
        assert peer.recv(4096)[:1] != b"H"
        with world.connect("127.0.0.1", 3128) as peer:  # nor may the proxy send plain what the rule wants in TLS
            peer.sendall(f"GET http://{HOST}:443/repos/x HTTP/1.1\r\nHost: {HOST}:443\r\n\r\n".encode())
            assert peer.recv(4096).startswith(b"HTTP/1.1 403 ")
    assert [(one["reason"], one["method"], one["path"]) for one in records] == [
        ("ALLOWED", "GET", "/repos/x"), ("PATH", "GET", "/user"), ("SNI_DIFFERS", "CONNECT", "/"), ("NO_TLS", "CONNECT", "/"),
        ("NO_RULE", "GET", "/repos/x")]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_http_2_is_not_spoken(world):
    records = []
    with world.channel(RULES, records, ports=PORTS):
        with connect(world, context=trusting(world, ["h2", "http/1.1"])) as peer:
            assert peer.selected_alpn_protocol() == "http/1.1"
            peer.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            assert peer.recv(4096).startswith(b"HTTP/1.1 400 ")
        with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
            connect(world, context=trusting(world, ["h2"]))
        old = trusting(world)
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises(ssl.SSLError):
            connect(world, context=old)
    assert [one["reason"] for one in records] == ["BAD_REQUEST", "NO_COMMON_TLS", "NO_COMMON_TLS"]


def test_a_run_trusts_no_other_run(world):
    with world.channel(RULES, ports=PORTS):
        first = world.authority
    with world.channel(RULES, ports=PORTS):
        assert world.authority != first and "KEY" not in world.authority
        with pytest.raises(ssl.SSLCertVerificationError):
            connect(world, context=ssl.create_default_context(cadata=first))
        assert "hello" in ask(world)


def test_much_passes_in_both_directions(world):
    with world.channel([{"host": HOST, "intercept": True}]):
        answer = ask(world, "/bytes/3000000")
        assert len(answer.partition("\r\n\r\n")[2]) == 3000000
        with connect(world) as peer:
            peer.sendall(f"POST /repos/z HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 3000000\r\n\r\n".encode() + bytes(3000000))
            assert peer.recv(4096).startswith(b"HTTP/1.1 200 ")
        with connect(world) as peer:  # a reader who takes his time loses nothing
            peer.sendall(f"GET /bytes/3000000 HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            got = len(peer.recv(100))
            time.sleep(2.5)
            while block := peer.recv(65536):
                got += len(block)
            assert got > 3000000


@pytest.mark.parametrize("terms, head, body, reason", [
    ({"sent": 100000}, "POST / HTTP/1.1\r\nHost: {}\r\nContent-Length: 3000000\r\n\r\n", 3000000, "SENT_TOO_MUCH"),
    ({"received": 100000}, "GET /bytes/3000000 HTTP/1.1\r\nHost: {}\r\n\r\n", 0, "RECEIVED_TOO_MUCH")])
def test_bytes_are_counted_as_elsewhere(world, terms, head, body, reason):
    records, got = [], 0
    with world.channel([{"host": HOST, "intercept": True}], records, **terms):
        with connect(world) as peer, contextlib.suppress(OSError):
            peer.sendall(head.format(HOST).encode() + bytes(body))
            while block := peer.recv(65536):
                got += len(block)
    assert got <= 100000 and [one["reason"] for one in records] == [reason]


def test_many_names(world):
    with world.channel(RULES, ports=PORTS):
        for i in range(60):
            name = f"n{i}.wide.example.org"
            with connect(world, name) as peer:
                assert ("DNS", name) in peer.getpeercert()["subjectAltName"]


def begin_slowly(world):
    """Twenty that begin to speak and then do not: some before the whole greeting, some after it."""
    half, address = greeting(world), world.look_up(HOST)
    slow = [world.connect(address, 443) for _ in range(20)]
    for index, peer in enumerate(slow):
        peer.sendall(half if index % 2 else half[:50])
    return slow


def greeting(world):
    """The first bytes of a client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(world).wrap_bio(incoming, outgoing, server_hostname=HOST)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_a_flood_of_handshakes_is_bounded(world):
    records = []
    with world.channel(RULES, records, ports=PORTS, connections=1000):
        address, hello = world.look_up(HOST), greeting(world)
        peers = [world.connect(address, 443) for _ in range(90)]
        for peer in peers:
            peer.sendall(hello)
        answers = [peer.recv(1) for peer in peers]
        assert answers.count(b"\x16") == 64 and answers.count(b"\x15") == 26  # handshakes, alerts
        for peer in peers:
            peer.close()
        with world.another_sandbox(), world.channel(RULES, ports=PORTS):
            assert "hello" in ask(world)  # another run has its own
        peers = [world.connect(address, 443) for _ in range(300)]  # before the first of them speaks: they take their time
        for group in (peers[i:i + 60] for i in range(0, 300, 60)):  # never more at once than a channel may have
            for peer in group:
                peer.sendall(hello)
            for peer in group:
                peer.recv(1)
                peer.close()
    reasons = [one["reason"] for one in records]
    assert reasons.count("TOO_MANY") > 26


def test_what_breaks_off_is_over(world):
    with world.channel(RULES, ports=PORTS):
        hello = greeting(world)
        for said in (hello + b"\x16\x03\x03\x00\x05garba", hello + bytes(40000), hello[:-1] + b"\x15\x03\x03\x00\x02\x02\x2a"):
            with world.connect(world.look_up(HOST), 443) as peer:
                with contextlib.suppress(OSError):
                    peer.sendall(said)
                    peer.shutdown(socket.SHUT_WR)
                    while peer.recv(65536):
                        pass
        with connect(world) as peer:  # garbage where records should be
            peer.sendall(b"GET /repos/x HTTP/1.1\r\n")
            with socket.socket(fileno=os.dup(peer.fileno())) as raw:
                raw.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
            with pytest.raises(OSError):
                assert peer.recv(10) == b""
                raise OSError("ended")
        assert "hello" in ask(world)


def test_a_refused_certificate_is_reported_at_the_end_of_a_run(world):
    """The end of the channel comes before the client's alert is read, and after it."""
    for is_alert_first in (True, False):
        number = world.open(RULES, ports=PORTS)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=HOST)
        peer = world.connect(world.look_up(HOST), 443)
        while True:
            try:
                client.do_handshake()
                pytest.fail("the client trusts it")
            except ssl.SSLWantReadError:
                peer.sendall(outgoing.read())
                incoming.write(peer.recv(65536))
            except ssl.SSLCertVerificationError:
                break
        world.process.send_signal(signal.SIGSTOP)
        try:
            if is_alert_first:
                peer.sendall(outgoing.read())
            world.send(CLOSE, struct.pack("<II", number, 0))
            if not is_alert_first:
                peer.sendall(outgoing.read())
            peer.close()
        finally:
            world.process.send_signal(signal.SIGCONT)
        [record] = world.read_to_end(number)
        assert record["reason"] == "NOT_BELIEVED", (is_alert_first, record)


def test_slow_handshakes_time_out_and_do_not_delay_other_connections(world):
    for peer in world.slow:  # they began before every other test of this file
        peer.settimeout(12)
        while peer.recv(65536):
            pass
        peer.close()
    assert [one["reason"] for one in world.end(world.slow_channel)] == 20 * ["TOO_SLOW"]
    assert world.lost == 0


@pytest.mark.parametrize("program", ["curl", "node", "openssl"])
def test_programs_of_the_host_find_it_by_their_variable(world, program, tmp_path):
    if not shutil.which(program):
        pytest.skip(f"needs {program}")
    url = f"https://{HOST}/repos/{program}"
    script = (f"require('https').get({{host: process.argv[1], servername: '{HOST}', path: '/repos/node', headers: {{Host: '{HOST}'}}}},"
              " answer => answer.pipe(process.stdout)).on('error', e => console.log(e.code))")
    bundle = tmp_path / "bundle.pem"
    with world.channel(RULES, ports=PORTS):
        bundle.write_text(world.authority)
        address = world.look_up(HOST)
        words = {"curl": ["curl", "-sS", "--resolve", f"{HOST}:443:{address}", url],
                 "node": ["node", "-e", script, address],
                 "openssl": ["openssl", "s_client", "-connect", f"{address}:443", "-servername", HOST, "-verify_return_error", "-x509_strict",
                             "-verify_hostname", HOST]}[program]
        variables = ("CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE")
        answers = []
        for more in ({name: str(bundle) for name in variables}, {}):
            environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()} | more
            with world.inside:
                done = subprocess.run(words, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, timeout=30)
            answers.append(done.stdout + done.stderr)
    trusted, untrusted = answers
    said = {"curl": "hello from", "node": "hello from", "openssl": "Verification: OK"}[program]
    assert said in trusted and said not in untrusted, answers

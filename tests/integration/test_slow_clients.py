"""Clients that are slow or silent on purpose use bounded memory, do not delay others, and are disconnected by the
bounds of docs/api.md; this service has shorter ones."""

import contextlib
import json
import pathlib
import resource
import select
import socket
import threading
import time

import pytest
from serving import Serving, state_of_its_own

pytestmark = [pytest.mark.usefixtures("python_template"), pytest.mark.alone]  # hundreds of connections, and how long each is served

MiB = 1 << 20
CAP_S = 4
HEAD = b" HTTP/1.1\r\nHost: localhost\r\n"
MANY_LINES = "import sys\nfor i in range({} * 1024): sys.stdout.write('y' * 1023 + '\\n')"


@pytest.fixture(autouse=True, scope="module")
def many_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    from conftest import Glovebox  # pylint: disable=import-outside-toplevel

    glovebox = Glovebox(tmp_path_factory.mktemp("slow"))
    state_of_its_own(glovebox)
    caps = [word for what in ("idle", "header", "body") for word in (f"--{what}-seconds", str(CAP_S))]
    with Serving(glovebox, "--no-keys", *caps) as serving:
        yield serving


def memory_of(service):
    status = pathlib.Path(f"/proc/{service.children()['gloveboxd']}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) * 1024


def by_tcp(service):
    return socket.create_connection(("127.0.0.1", service.port), timeout=60)


def by_unix(service):
    """With the owner's rights. Its end is seen although it has not read what came before."""
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(60)
    while True:
        try:
            peer.connect(service.socket)
            return peer
        except BlockingIOError:  # as many as can wait at the socket do
            time.sleep(0.05)


def open_many(service, dial, count, request):
    peers = []
    for _ in range(count):
        peer = dial(service)
        with contextlib.suppress(OSError):
            peer.sendall(request)
        peers.append(peer)
    return peers


def others_are_served(service):
    begin = time.monotonic()
    assert service.run("print('hello')").json["stdout"] == "hello\n"
    assert time.monotonic() - begin < 30


@contextlib.contextmanager
def dripping(peers):
    """However long the block takes, none of them has been silent."""
    over = threading.Event()

    def drip():
        while not over.wait(0.5):
            for peer in peers:
                with contextlib.suppress(OSError):
                    peer.send(b"x")
    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def said_at_the_end(peers, drip):
    """What each was told, while it goes on to send a byte now and then."""
    told, left = {}, set(peers)
    for peer in peers:
        peer.setblocking(False)
    end = time.monotonic() + 60
    while left and time.monotonic() < end:
        for peer in [*left]:
            try:
                if peer in drip:
                    peer.send(b"x")
                piece = peer.recv(4096)
            except BlockingIOError:
                continue
            except OSError:
                piece = b""
            told[peer] = told.get(peer, b"") + piece
            if not piece:
                left.remove(peer)
        time.sleep(0.2)
    assert not left, f"{len(left)} are still served"
    return [told[peer] for peer in peers]


def close_all(*groups):
    for peer in [peer for group in groups for peer in group]:
        peer.close()


def test_headers_and_bodies_that_drip_in_and_silence(service):
    before = memory_of(service)
    headers = open_many(service, by_tcp, 160, b"GET /healthz" + HEAD + b"X: ")
    bodies = open_many(service, by_tcp, 160, b"POST /v1/runs" + HEAD + b"Content-Length: 9999\r\n\r\n{")
    silent = open_many(service, by_tcp, 160, b"")
    with dripping(headers + bodies):
        others_are_served(service)
        assert memory_of(service) - before < 48 * MiB
    told = said_at_the_end(headers + bodies + silent, {*headers, *bodies})
    for what, answers in (("header", told[:160]), ("body", told[160:320])):
        for answer in answers:
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n") and b"Connection: close" in head, answer
            error = json.loads(body)["error"]
            assert error == {"code": "timeout", "message": f"the {what} was incomplete after {CAP_S} s; send it faster",
                             "fault": "caller", "retryable": True}
    for answer in told[320:]:  # idle, or without a header: both are over at the same moment
        assert answer == b"" or answer.startswith(b"HTTP/1.1 408 "), answer
    close_all(headers, bodies, silent)


def test_giant_headers(service):
    before = memory_of(service)
    one_line = open_many(service, by_tcp, 200, b"GET /healthz" + HEAD + b"X: " + b"b" * 100_000 + b"\r\n\r\n")
    many_lines = open_many(service, by_tcp, 200, b"GET /healthz" + HEAD + b"A: b\r\n" * 20_000 + b"\r\n")
    others_are_served(service)
    assert memory_of(service) - before < 48 * MiB
    for answer in said_at_the_end(one_line + many_lines, set()):
        assert answer == b"" or answer.startswith(b"HTTP/1.1 431 "), answer  # a reset may take the answer along
    close_all(one_line, many_lines)


def wait_until_ended(peers):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        poller = select.poll()
        for peer in peers:
            poller.register(peer, 0)  # POLLHUP comes unasked
        ended = len(poller.poll(0))
        if ended == len(peers):
            return
        time.sleep(0.1)
    raise AssertionError(f"{len(peers) - ended} of {len(peers)} are still served")


def test_unread_responses(service):
    made = service.run(MANY_LINES.format(8) + "\nopen('big', 'wb').write(bytes(8 << 20))", policy="data",
                       limits={"output_bytes": 8 * MiB}).json
    run, file = f"/v1/runs/{made['id']}".encode(), made["artifacts"][0]["url"].encode()
    before = memory_of(service)
    peers = [peer for path in (run, run + b"/events", file)
             for peer in open_many(service, by_unix, 160, b"GET " + path + HEAD + b"\r\n")]
    others_are_served(service)
    assert memory_of(service) - before < 64 * MiB  # 480 answers of 8 MiB
    wait_until_ended(peers)
    close_all(peers)


def test_all_connections_are_held(service):
    path = service.run("open('big', 'wb').write(bytes(2 << 20))", policy="data").json["artifacts"][0]["url"].encode()
    peers = open_many(service, by_unix, 600, b"GET " + path + HEAD + b"\r\n")
    others_are_served(service)
    others_are_served(service)
    close_all(peers)
    others_are_served(service)


def test_a_reader_that_goes_on_is_served_to_the_end(service):
    """Longer than every cap, without a moment of which it could be said that nothing is taken."""
    made = service.run(MANY_LINES.format(4), policy="data", limits={"output_bytes": 8 * MiB}).json
    readers = {by_unix(service): 0, by_unix(service): 0}
    for peer, what in zip(readers, ("", "/events")):
        peer.sendall(f"GET /v1/runs/{made['id']}{what}".encode() + HEAD + b"Connection: close\r\n\r\n")
    begin, left = time.monotonic(), set(readers)
    while left:
        for peer in [*left]:
            piece = peer.recv(64 * 1024)
            readers[peer] += len(piece)
            if not piece:
                left.remove(peer)
        time.sleep(0.1 if time.monotonic() - begin < CAP_S + 1 else 0)
    assert min(readers.values()) > 4 * MiB
    close_all(readers)


def test_unread_results_are_freed(glovebox):
    """Each of another run. Beyond 128 MiB together the oldest are taken from their readers, the newest is not."""
    state_of_its_own(glovebox)
    body = json.dumps({"code": MANY_LINES.format(8), "language": "python", "policy": "data",
                       "limits": {"output_bytes": 8 * MiB}}).encode()
    request = b"POST /v1/runs" + HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with Serving(glovebox, "--idle-seconds", "600") as serving:  # none of them ends because it is idle
        peers = []
        for _ in range(20):
            peers += open_many(serving, by_unix, 1, request)
            select.select([peers[-1]], [], [], 60)  # its answer has begun
        others_are_served(serving)
        wait_until_ended(peers[:4])
        poller = select.poll()
        for peer in peers[-8:]:
            poller.register(peer, 0)
        assert not poller.poll(0)
        close_all(peers)


def test_refusals_in_a_row_come_later_and_whole(service):
    """The first 500 of a second are answered at once, and what comes then a quarter of a second after the other."""
    count, free, heard = 510, 500, b""
    request = b"GET /v1/runs/none" + HEAD + b"\r\n"
    with by_tcp(service) as peer, by_tcp(service) as other:
        begin = time.monotonic()
        peer.sendall(request * count)
        while heard.count(b"HTTP/1.1 404") < free:
            heard += peer.recv(65536)
        were_quick = time.monotonic() - begin < 0.7
        other.sendall(request)
        assert other.recv(65536).startswith(b"HTTP/1.1 404")
        others_are_served(service)
        while heard.count(b'"retryable":') < count:
            heard += peer.recv(65536)
        took = time.monotonic() - begin
    assert heard.count(b"HTTP/1.1 404") == heard.count(b'"code":"not_found"') == count
    assert took >= 1 or not were_quick, took

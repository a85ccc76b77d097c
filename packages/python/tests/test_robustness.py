"""What goes wrong on the way: connections that are cut, forks, interrupts, cancellation, many calls at once, TLS, and
results that are made to do harm. Most of it needs no daemon: Peer speaks just enough HTTP."""

import asyncio
import base64
import json
import multiprocessing
import os
import pathlib
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import glovebox
import pytest
from conftest import Flavour
from glovebox import _http, models
from glovebox._async.client import AsyncClient
from glovebox._async.client import IDLE_MAX as KEPT
from glovebox._endpoint import Endpoint
from glovebox._sync.client import Client
from peer import END, KEY, STREAM, Peer, answer, events

FLAVOURS = pytest.mark.parametrize("name", ["sync", "async"])


def says_ok(connection, request):
    connection.sendall(answer(END))


def flavour(name, peer):
    return Flavour(name, **peer.server)


async def call(name, peer, *arguments, **options):
    """A call of a client of its own."""
    if name == "sync":
        client = Client(peer.endpoint)
        try:
            return client.call(*arguments, **options)
        finally:
            client.close()
    other = AsyncClient(peer.endpoint)
    try:
        return await other.call(*arguments, **options)
    finally:
        await other.aclose()


# --- connections that are cut ---

class CuttingProxy(Peer):
    """Between a client and a daemon. The first connection is cut after `size` bytes from the daemon, each
    later one after 1,000 more: the last event, of 3,000 bytes, comes through at some time."""

    def __init__(self, target, size):
        self.target, self.size, self.cuts = target, size, 0
        super().__init__(None)

    def serve(self, peer):
        with peer, socket.socket(socket.AF_UNIX) as daemon:
            daemon.connect(self.target)
            threading.Thread(target=self.copy, args=(peer, daemon), daemon=True).start()
            left = self.size + 1000 * (self.accepted - 1)
            try:
                while left > 0:
                    piece = daemon.recv(min(left, 4096))
                    if not piece:
                        return
                    peer.sendall(piece)
                    left -= len(piece)
                self.cuts += 1
            except OSError:
                pass
            finally:
                for each in (peer, daemon):
                    try:
                        each.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass

    @staticmethod
    def copy(source, target):
        try:
            while True:
                piece = source.recv(65536)
                if not piece:
                    return
                target.sendall(piece)
        except OSError:
            pass


@FLAVOURS
@pytest.mark.parametrize("size", [100, 700, 1500, 3000])
async def test_a_stream_is_whole_through_a_proxy_that_cuts(name, size, server):
    said = []
    with CuttingProxy(server.socket, size) as proxy:
        result = await flavour(name, proxy).run("for i in range(300): print(i, flush=True)",
                                                on_stdout=lambda message: said.append(message.line))
    assert proxy.cuts and "".join(said) == "".join(f"{i}\n" for i in range(300)) and result.error is None


@FLAVOURS
async def test_a_stream_that_is_cut_at_each_of_its_bytes_is_whole(name, monkeypatch):
    rows = [("started", {"id": "run_1"}), *(("stdout", {"data": f"{i}é"}) for i in range(3)), ("end", END)]
    whole = STREAM + events(*rows) + b"0\r\n\r\n"
    for flavour_name in ("_sync", "_async"):
        monkeypatch.setattr(f"glovebox.{flavour_name}.sandbox.RETRY_PAUSES", (0.001,) * 3)

    def handle(connection, request):
        if len(peer.requests) == 1:
            connection.sendall(whole[:size])
            return False
        seen = next((int(line.split(b":")[1]) for line in request.split(b"\r\n") if line.startswith(b"Last-Event-ID")), 0)
        connection.sendall(STREAM + events(*rows, after=seen) + b"0\r\n\r\n")
    keys = set()
    with Peer(handle) as peer:
        api = flavour(name, peer)
        for size in range(len(whole)):
            said = []
            result = await api.run("x", on_stdout=lambda message: said.append(message.line))
            assert "".join(said) == "0é1é2é" and result.status == "ok", size
            posts = [request for request in peer.requests if request.startswith(b"POST")]
            assert len({next(line for line in post.split(b"\r\n") if line.startswith(b"Idempotency-Key")) for post in posts}) == 1
            keys.add(len(posts))
            peer.requests.clear()
    assert keys == {1, 2}  # before its id was known, the run was asked for again by the same key


@FLAVOURS
async def test_an_answer_that_is_cut_at_each_of_its_bytes_is_asked_for_again(name, monkeypatch):
    whole = answer(END)
    for flavour_name in ("_sync", "_async"):
        monkeypatch.setattr(f"glovebox.{flavour_name}.client.RETRY_PAUSES", (0.001,) * 3)

    def handle(connection, request):
        if len(peer.requests) % 2 == 0:
            return says_ok(connection, request)
        connection.sendall(whole[:size])
        return False
    with Peer(handle) as peer:
        for size in range(len(whole)):
            assert await call(name, peer, "GET", "/v1/x") == END
        assert len(peer.requests) == 2 * len(whole)


@FLAVOURS
async def test_an_answer_that_is_cut_is_asked_for_again(name):
    def handle(connection, request):
        if len(peer.requests) > 2:
            return says_ok(connection, request)
        connection.sendall(answer(END)[:-5])
        return False
    with Peer(handle) as peer:
        assert (await call(name, peer, "GET", "/v1/x"))["id"] == "run_1" and len(peer.requests) == 3


@FLAVOURS
async def test_a_request_that_is_not_idempotent_is_not_repeated(name):
    with Peer(lambda connection, request: False) as peer:
        with pytest.raises(glovebox.ConnectionLost):
            await call(name, peer, "POST", "/v1/x", {})
        assert len(peer.requests) == 1


@FLAVOURS
async def test_the_events_of_a_command_that_always_break_off_end_in_an_error(name, monkeypatch):
    def handle(connection, request):
        if request.startswith(b"POST /v1/sessions "):
            return connection.sendall(answer({"id": "s1"}))
        if b"/processes" not in request or request.startswith(b"POST /v1/sessions/s1/processes/"):
            return says_ok(connection, request)
        connection.sendall(STREAM + (events(("started", {"id": "p1", "pid": 1, "offset": 0}))
                                     if request.startswith(b"POST") else b""))
        return False
    for flavour_name in ("_sync", "_async"):
        monkeypatch.setattr(f"glovebox.{flavour_name}.commands.RETRY_PAUSES", (0.01,) * 3)
    with Peer(handle) as peer:
        sandbox = await flavour(name, peer).sandbox()
        with pytest.raises(glovebox.ConnectionLost, match="broke off 3 times"):
            await sandbox.commands.run("x")
        assert sum(b"/events" in request for request in peer.requests) == 3


# --- who ends a call ---

def streams_then_waits(connection, request):
    if request.startswith(b"DELETE"):
        return says_ok(connection, request)
    connection.sendall(STREAM + events(("started", {"id": "run_1"}), ("stdout", {"data": "x"})))


@FLAVOURS
async def test_a_callback_that_raises_closes_its_connection_and_cancels_the_run(name):
    class Mine(Exception):
        pass

    def fails(message):
        raise Mine(message.line)
    with Peer(streams_then_waits) as peer:
        with pytest.raises(Mine) as kept:  # and its traceback lives on
            await flavour(name, peer).run("x", on_stdout=fails)
        assert await asyncio.get_running_loop().run_in_executor(None, peer.ended.wait, 30)
        assert str(kept.value) == "x" and peer.requests[-1].startswith(b"DELETE /v1/runs/run_1 ")


def interrupts(connection, request):
    """Ctrl-C, once the request has come; what follows is answered."""
    if len(peer_of_interrupt[0].requests) == 1:
        if b"event-stream" in request:
            connection.sendall(STREAM + events(("started", {"id": "run_1"}), ("stdout", {"data": "x"})))
        else:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    else:
        says_ok(connection, request)


peer_of_interrupt = []


@pytest.mark.parametrize("streams", [False, True])
def test_ctrl_c_ends_the_connection_and_the_next_call_works(streams):
    def pressed(message):
        signal.raise_signal(signal.SIGINT)
    with Peer(interrupts) as peer:
        peer_of_interrupt[:] = [peer]
        with pytest.raises(KeyboardInterrupt):
            glovebox.run("x", **({"on_stdout": pressed} if streams else {}), **peer.server)
        assert peer.ended.wait(30)
        assert peer.requests[-1].startswith(b"DELETE /v1/runs/run_1 ") == streams
        assert glovebox.run("x", **peer.server).stdout == "x"


def same(item):
    return item


CALLS = {
    "Sandbox": lambda sandbox, server: glovebox.Sandbox(**server),
    "list": lambda sandbox, server: glovebox.Sandbox.list(**server),
    "run_code": lambda sandbox, server: sandbox.run_code("x"),
    "files.read": lambda sandbox, server: sandbox.files.read("a"),
    "files.write": lambda sandbox, server: sandbox.files.write("a", b"x" * (1 << 20)),
    "files.list": lambda sandbox, server: sandbox.files.list(),
    "download_dir": lambda sandbox, server: list(sandbox.files.download_dir()),
    "watch_dir": lambda sandbox, server: list(sandbox.files.watch_dir(".")),
    "commands.run": lambda sandbox, server: sandbox.commands.run("x"),
    "commands.list": lambda sandbox, server: sandbox.commands.list(),
    "pty": lambda sandbox, server: sandbox.pty.create(),
    "branch": lambda sandbox, server: sandbox.branch(2),
    "checkpoint": lambda sandbox, server: sandbox.checkpoint(),
    "request": lambda sandbox, server: sandbox.request(80),
    "download": lambda sandbox, server: glovebox.download(glovebox.Artifact("a", 1, "0" * 64, "text/plain", "x"), **server),
    "map": lambda sandbox, server: glovebox.map(same, range(4), **server),
}


@pytest.mark.parametrize("what", CALLS)
@pytest.mark.parametrize("begins", [False, True])
def test_ctrl_c_in_each_call_ends_its_connections(what, begins):
    """Before anything has come, and in the middle of the answer."""
    silent = threading.Event()

    def handle(connection, request):
        if not silent.is_set():
            return connection.sendall(answer({"id": "s1"}))
        if begins:
            connection.sendall(STREAM + b"5\r\nevent\r\n")
        if len(ended) == 0:
            ended.append(request)
            threading.Timer(0.05, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
    ended = []
    with Peer(handle) as peer:
        sandbox = glovebox.Sandbox(**peer.server)
        silent.set()
        with pytest.raises(KeyboardInterrupt):
            CALLS[what](sandbox, peer.server)
        deadline = time.monotonic() + 30
        while peer.open:
            assert time.monotonic() < deadline, "a connection is still open"
            time.sleep(0.01)
        silent.clear()
        assert glovebox.Sandbox(**peer.server).sandbox_id == "s1"


@pytest.mark.parametrize("streams", [False, True])
def test_cancellation_ends_the_connection_and_the_next_call_works(streams):
    asked = threading.Event()

    def handle(connection, request):
        if asked.is_set():
            return says_ok(connection, request)
        if streams:
            connection.sendall(STREAM + events(("started", {"id": "run_1"}), ("stdout", {"data": "x"})))
        asked.set()

    async def main():
        said = asyncio.Event()
        task = asyncio.ensure_future(glovebox.arun(
            "x", **({"on_stdout": lambda _: said.set()} if streams else {}), **peer.server))
        await asyncio.get_running_loop().run_in_executor(None, asked.wait, 30)
        if streams:
            await said.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.get_running_loop().run_in_executor(None, peer.ended.wait, 30)
        assert peer.requests[-1].startswith(b"DELETE /v1/runs/run_1 ") == streams
        assert (await glovebox.arun("x", **peer.server)).stdout == "x"
    with Peer(handle) as peer:
        asyncio.run(main())


@FLAVOURS
async def test_a_timeout_closes_its_connection(name):
    with Peer(lambda connection, request: None) as peer:
        with pytest.raises(glovebox.TimeoutException):
            await call(name, peer, "GET", "/v1/x", timeout=0.05)
        assert await asyncio.get_running_loop().run_in_executor(None, peer.ended.wait, 30)


# --- forks and many at once ---

def in_child(function):
    """The exit status of a forked process that calls it."""
    child = os.fork()
    if child == 0:
        try:
            function()
            os._exit(0)
        except SystemExit as end:
            os._exit(int(end.code or 0))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_connections_of_its_own():
    with Peer(says_ok) as peer:
        client = Client(peer.endpoint)
        client.call("GET", "/parent")
        assert in_child(lambda: client.call("GET", "/child")) == 0 and peer.accepted == 2
        client.call("GET", "/parent")
        assert peer.accepted == 2


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_in_a_loop_leaves_the_connections_of_the_parent():
    """The loops of both share an epoll descriptor: a transport that the child closes would never wake the parent."""
    async def main():
        client = AsyncClient(peer.endpoint)
        await client.call("GET", "/parent")

        def child():
            asyncio.events._set_running_loop(None)
            asyncio.run(client.call("GET", "/child"))
        assert in_child(child) == 0 and peer.accepted == 2
        await client.call("GET", "/parent", timeout=30)
        assert peer.accepted == 2
        await client.aclose()
    with Peer(says_ok) as peer:
        asyncio.run(main())


def test_a_client_goes_from_loop_to_loop():
    with Peer(says_ok) as peer:
        client = AsyncClient(peer.endpoint)
        for _ in range(3):
            asyncio.run(client.call("GET", "/v1/x"))
        assert peer.accepted == 3


def test_a_thousand_coroutines_at_once():
    async def main():
        client = AsyncClient(peer.endpoint)
        for _ in range(2):
            rows = await asyncio.gather(*(client.call("GET", f"/v1/{i}") for i in range(1000)))
            assert all(row["id"] == "run_1" for row in rows)
            assert 0 < len(client._idle) <= KEPT
        await client.aclose()
        assert not client._idle
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip(f"1,000 connections and their other ends need 4,096 descriptors, the limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    try:
        with Peer(says_ok) as peer:
            asyncio.run(main())
            assert len(peer.requests) == 2000
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# --- TLS ---

@pytest.fixture(scope="module")
def authority():
    """A certificate authority, and what it has signed for localhost."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="glovebox-tls-"))

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test", "-days", "2",
            "-addext", "keyUsage=critical,keyCertSign")
    openssl("req", *key, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=DNS:localhost\nauthorityKeyIdentifier=keyid\n")
    openssl("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "names", "-out", "certificate.pem")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def tls(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "certificate.pem", authority / "key.pem")
    with Peer(says_ok, context) as peer:
        yield peer


@FLAVOURS
async def test_tls_with_an_authority_of_ones_own(name, tls, authority, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
    assert (await flavour(name, tls).run("x")).stdout == "x"
    assert b"POST /v1/runs " in tls.requests[0]


@FLAVOURS
async def test_tls_with_an_authority_that_the_caller_names(name, tls, authority):
    tls.server["ca"] = str(authority / "ca.pem")
    assert (await flavour(name, tls).run("x")).stdout == "x"


@FLAVOURS
@pytest.mark.parametrize("content", [None, "no certificate\n"])
async def test_an_authority_that_cannot_be_read_is_the_callers_mistake(name, tls, authority, content):
    file = authority / "other.pem"
    file.unlink(missing_ok=True)
    if content:
        file.write_text(content)
    tls.server["ca"] = str(file)
    with pytest.raises(glovebox.InvalidArgumentException, match="ca=.*PEM"):
        await flavour(name, tls).run("x")
    assert not tls.requests


@FLAVOURS
@pytest.mark.parametrize("server", [{"url": "http://127.0.0.1:9"}, {"socket": "/nowhere"}])
async def test_an_authority_without_tls_is_refused(name, server):
    with pytest.raises(glovebox.InvalidArgumentException, match="https"):
        await Flavour(name, ca="/nowhere", **server).run("x")


@FLAVOURS
async def test_tls_refuses_an_authority_that_is_not_known(name, tls):
    with pytest.raises(glovebox.ConnectionLost, match="(?i)certificate.verify"):
        await call(name, tls, "POST", "/v1/x", {})
    assert not tls.requests  # nothing was said to it, no key above all


@FLAVOURS
async def test_tls_refuses_another_host_name(name, tls, authority, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
    tls.server = {"url": tls.server["url"].replace("localhost", "127.0.0.1")}
    with pytest.raises(glovebox.ConnectionLost, match="(?i)certificate.verify"):
        await call(name, tls, "POST", "/v1/x", {})
    assert not tls.requests


# --- keys ---

@FLAVOURS
@pytest.mark.parametrize("handle", [lambda *_: False, lambda connection, _: connection.sendall(b"no HTTP\r\n\r\n")])
async def test_a_key_is_in_no_variable_of_a_traceback(name, handle):
    with Peer(handle) as peer:
        with pytest.raises(glovebox.GloveboxError) as caught:
            await call(name, peer, "POST", "/v1/x", {})
        assert KEY.encode() in peer.requests[0]
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "stream" in shown and KEY not in shown


@pytest.mark.parametrize("url", ["http://h:99999", "http://[::1", f"http://h:{KEY}", "http:///x", "ftp://h", "h"])
def test_an_invalid_url_is_reported_without_its_text(url):
    with pytest.raises(glovebox.ProtocolError) as caught:
        Endpoint(url=url)
    shown = "".join(traceback.format_exception(type(caught.value), caught.value, None))
    assert caught.value.fault == "caller" and KEY not in shown


@pytest.mark.parametrize("key", ["a\r\nX: y", "a\0", "key\u20ac"])
def test_an_invalid_key_is_reported_without_its_text(key):
    with pytest.raises(glovebox.ProtocolError, match="header Authorization") as caught:
        Endpoint(socket="/s", api_key=key)
    assert key not in str(caught.value)


@FLAVOURS
async def test_a_mistake_of_the_caller_is_not_tried_again(name, monkeypatch):
    for flavour_name in ("_sync", "_async"):
        monkeypatch.setattr(f"glovebox.{flavour_name}.client.sleep", None)
    with Peer(says_ok) as peer:
        with pytest.raises(glovebox.ProtocolError) as caught:
            await call(name, peer, "GET", "/v1/x", headers={"X": "a\nb"})
        assert caught.value.fault == "caller" and not peer.requests


@FLAVOURS
async def test_a_host_that_can_be_no_name_is_a_lost_connection(name, tls):
    tls.server = {"url": f"http://{'a' * 80}.example"}
    with pytest.raises(glovebox.ConnectionLost):
        await call(name, tls, "POST", "/v1/x", {})


@FLAVOURS
async def test_a_full_backlog_is_waited_for(name, tmp_path):
    path = str(tmp_path / "socket")

    def serve():
        time.sleep(0.3)
        others = [listener.accept()[0]]
        others.append(listener.accept()[0])
        others[1].recv(65536)
        others[1].sendall(answer(END))
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(path)
        listener.listen(0)
        first.connect(path)
        with pytest.raises(BlockingIOError), socket.socket(socket.AF_UNIX) as second:
            second.setblocking(False)
            second.connect(path)
        server = threading.Thread(target=serve)
        server.start()
        kind = Client if name == "sync" else AsyncClient
        client = kind(lambda: Endpoint(socket=path))
        told = client.call("GET", "/v1/x")
        assert (told if name == "sync" else await told) == END
        server.join()
        closed = client.close() if name == "sync" else client.aclose()
        if name != "sync":
            await closed


# --- hostile results ---

PNG_HEAD = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def png(width, height):
    return base64.b64encode(PNG_HEAD + struct.pack(">II", width, height) + b"\x08\x02\0\0\0").decode()


@FLAVOURS
@pytest.mark.parametrize("row", [
    {"text/plain": {"a": 1}}, {"text/html": ["<script>"]}, {"image/png": 7}, {"image/svg+xml": {}}, {"text/plain": None},
    {models.TABLE: "no table"}, {"image/png": '"><script>x</script>'}, {"image/png": png(60000, 60000)},
    {"image/png": png(0, 1)}, {"image/png": "iVBORw0KGgo"}, {"image/jpeg": "<svg onload=x>"},
    {"text/html": "<img src=https://example.test/?q>"}, {"image/svg+xml": "<svg><image href='https://example.test/'/>"},
    {"text/plain": "\udc80"}, {"application/json": float("nan")},
])
async def test_what_a_notebook_is_given_is_safe_to_show(name, row):
    body = {**END, "results": [{"main": True, "data": row}]}
    with Peer(lambda connection, request: connection.sendall(answer(body))) as peer:
        result = await flavour(name, peer).run("x")
    bundle = result._repr_mimebundle_()
    assert repr(result) and str(result.results[0]) and all(isinstance(each, str) for each in bundle.values())
    assert not {"image/png", "image/jpeg"} & set(bundle)
    shown = bundle.get("text/html", "")
    assert "<script" not in shown and "<img" not in shown and "<svg" not in shown
    if shown:
        assert "Content-Security-Policy" in shown and "default-src &#x27;none&#x27;" in shown


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_a_picture_of_usual_size_is_shown(kind):
    picture = png(640, 480) if kind == "png" else base64.encodebytes(b"\xff\xd8\xff" + b"x" * 100).decode()
    assert models.Result({"data": {f"image/{kind}": picture}})._repr_mimebundle_()[f"image/{kind}"] == picture


@FLAVOURS
@pytest.mark.parametrize("body", [
    b"[" * 100_000, b'{"a":' * 100_000, b'{"a": "\xff\xfe"}', b"1" * 100 + b"x", b"", b"\x80\x04cos\nsystem\n"])
async def test_an_answer_that_is_no_json_is_an_error(name, body):
    def handle(connection, request):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    with Peer(handle) as peer:
        if not body:
            assert await call(name, peer, "GET", "/v1/x") is None
            return
        with pytest.raises(glovebox.ProtocolError):
            await call(name, peer, "GET", "/v1/x")
        assert len(peer.requests) == 1


@FLAVOURS
@pytest.mark.parametrize("head", [
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000, b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\n", b"HTTP/1.1 \xb2\xb2\xb2 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"])
async def test_an_answer_that_is_no_http_is_an_error(name, head):
    with Peer(lambda connection, request: connection.sendall(head)) as peer:
        with pytest.raises(glovebox.ProtocolError):
            await call(name, peer, "POST", "/v1/x", {})


@FLAVOURS
async def test_an_answer_without_end_is_bounded(name, monkeypatch):
    def handle(connection, request):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1 << 30))
        while True:
            connection.sendall(b"x" * 65536)
    for flavour_name in ("_sync", "_async"):
        monkeypatch.setattr(f"glovebox.{flavour_name}.client.BODY_MAX", 1 << 20)
    with Peer(handle) as peer:
        with pytest.raises(glovebox.ProtocolError, match="longer than 1048576"):
            await call(name, peer, "POST", "/v1/x", {})


def test_an_event_without_end_is_bounded(monkeypatch):
    monkeypatch.setattr(_http, "EVENT_MAX", 1 << 20)
    reader = _http.EventReader()
    with pytest.raises(glovebox.ProtocolError, match="an event is too long"):
        for _ in range(32):
            reader.feed(b"data: " + b"x" * 65536)


def frames_of(error):
    """A traceback with the variables of each frame, as debuggers and loggers of errors show them, without those of this file."""
    rows = traceback.TracebackException.from_exception(error, capture_locals=True)
    seen, texts = set(), []
    while rows is not None and id(rows) not in seen:
        seen.add(id(rows))
        texts += [f"{frame.filename}:{frame.lineno} {frame.locals}" for frame in rows.stack if frame.filename != __file__]
        rows = rows.__cause__ or rows.__context__
    return texts


@FLAVOURS
@pytest.mark.parametrize("call_of", ["run", "sandbox", "list", "connect", "download", "server", "map", "docker", "tools", "app"])
async def test_a_key_that_is_an_argument_is_in_no_frame_of_the_package(name, call_of, monkeypatch):
    for flavour_name in ("_sync", "_async"):
        monkeypatch.setattr(f"glovebox.{flavour_name}.client.RETRY_PAUSES", (0.01,))
    artifact = glovebox.Artifact("a", 1, "sha256:" + "0" * 64, "text/plain", "/v1/artifacts/x")
    with Peer(lambda *_: False) as peer:
        api = Flavour(name, api_key=KEY, **peer.server)
        calls = {"run": lambda: api.run("x"), "sandbox": api.sandbox, "list": api.list, "connect": lambda: api.connect("s"),
                 "download": lambda: api.download(artifact), "server": lambda: api.whole_server().health()}
        plain = {"map": lambda: glovebox.map(abs, [1], **api.server), "docker": lambda: glovebox.DockerSandbox(**api.server).execute("x"),
                 "tools": lambda: glovebox.Tools([], "openai", api.server, None).sandbox,
                 "app": lambda: glovebox.App(**api.server).function()(abs).remote(1)}
        with pytest.raises(glovebox.ConnectionLost) as caught:
            if call_of in calls:
                await calls[call_of]()
            else:
                plain[call_of]()
        assert peer.requests and KEY.encode() in peer.requests[0]
    texts = [text for text in frames_of(caught.value) if "conftest" not in text and "concurrent" not in text]
    assert any("glovebox" in text for text in texts) and not [text for text in texts if KEY in text]


# --- forks in the middle of a stream ---

def streams_slowly(connection, request):
    """Events of which the last come when a file descriptor of the test says so."""
    if not request.startswith(b"POST"):
        return says_ok(connection, request)
    connection.sendall(STREAM + events(("started", {"id": "run_1"}), ("stdout", {"data": "0"})))
    gate_of_stream[0].wait(30)
    connection.sendall(events(*[("stdout", {"data": str(i)}) for i in range(1, 100)], ("end", END)) + b"0\r\n\r\n")


gate_of_stream = []
CHILDREN = {
    "exits": lambda: None,
    "raises": lambda: 1 // 0,
    "leaves": lambda: sys.exit(0),
}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@FLAVOURS
@pytest.mark.parametrize("way", CHILDREN)
async def test_a_fork_in_a_stream_leaves_it_to_the_parent(name, way):
    """The child leaves in each way that there is: its end neither reads from the connection nor cancels the run."""
    said, parent = [], os.getpid()
    gate_of_stream[:] = [threading.Event()]

    def on_stdout(message):
        said.append(message.line)
        if len(said) == 1:
            child = os.fork()
            if child == 0:
                CHILDREN[way]()
                os._exit(0)
            os.waitpid(child, 0)
            gate_of_stream[0].set()
    with Peer(streams_slowly) as peer:
        try:
            result = await flavour(name, peer).run("x", on_stdout=on_stdout)
        finally:
            if os.getpid() != parent:
                os._exit(0)
        assert "".join(said) == "".join(map(str, range(100))) and result.status == "ok"
        assert [request.split(b" ")[0] for request in peer.requests] == [b"POST"]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_reads_on_has_a_connection_of_its_own():
    """What it read of the shared one would be missing in the parent."""
    said, parent = [], os.getpid()
    gate_of_stream[:] = [threading.Event()]

    def on_stdout(message):
        said.append(message.line)
        if len(said) == 1:
            children.append(os.fork())
            if children[0] != 0:
                os.waitpid(children[0], 0)
                gate_of_stream[0].set()
    children = []
    with Peer(streams_slowly) as peer:
        try:
            result = glovebox.run("x", on_stdout=on_stdout, **peer.server)
        finally:
            if os.getpid() != parent:
                os._exit(0)
        assert len(said) == 100 and result.status == "ok"
        assert [request.split(b" ")[:2] for request in peer.requests] == [
            [b"POST", b"/v1/runs"], [b"GET", b"/v1/runs/run_1/events"]]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_do_not_end_the_sandbox_of_their_parent(server):
    with glovebox.Sandbox(policy="minimal", socket=server.socket) as sandbox:
        sandbox.files.write("a", "1")

        def leave():
            with sandbox:
                sys.exit(sandbox.files.read("a") != "1")
        children = [multiprocessing.get_context("fork").Process(target=leave) for _ in range(4)]
        for child in children:
            child.start()
        for child in children:
            child.join(30)
        assert [child.exitcode for child in children] == [0] * 4
        assert in_child(leave) == 0
        seen = []

        def on_stdout(text):
            seen.append(text)
            if len(seen) == 1 and os.fork() == 0:
                os._exit(0)
        sandbox.commands.run("for i in 1 2 3; do echo $i; sleep 0.2; done", on_stdout=on_stdout)
        assert "".join(seen) == "1\n2\n3\n" and sandbox.files.read("a") == "1"
    assert not sandbox.is_running()


USUAL = b"HTTP/1.1 200 OK\r\nDate: now\r\ncontent-length: 2\r\nX: y\r\n\r\n{}"


@pytest.mark.parametrize("answer, body", [
    (USUAL, b"{}"), (USUAL.replace(b"200 OK", b"201 Created"), b"{}"), (USUAL.replace(b": 2", b": 0")[:-2], b""),
    *[(USUAL.replace(b": 2", b": 0")[:length], None) for length in range(len(USUAL) - 2)],
    *[(USUAL[:length], None) for length in range(len(USUAL))], (USUAL + b"H", None), (USUAL.replace(b": 2", b": 02"), None),
    *[(USUAL.replace(b"X: y", other), None) for other in (b"Connection: close", b"Transfer-Encoding: chunked", b"Content-Length: 2",
                                                          b"Content-Length: 3")],
    *[(USUAL.replace(b"200 OK", other), None) for other in (b"100 Continue", b"204 No Content", b"404 Not Found", b"2000 OK")],
    (USUAL.replace(b"1.1", b"1.0"), None), (USUAL.replace(b"content-length: 2", b"A: b"), None)])
def test_only_an_answer_that_came_whole_takes_the_short_way(answer, body):
    assert _http.whole_body(answer) == body


@FLAVOURS
@pytest.mark.parametrize("cut", [1, 20, len(answer(END)) - 5])
async def test_an_answer_to_a_run_that_comes_in_two_pieces_is_read(name, cut):
    whole = answer(END)

    def handle(connection, request):
        connection.sendall(whole[:cut])
        time.sleep(0.02)
        connection.sendall(whole[cut:])
    with Peer(handle) as peer:
        for _ in range(2):
            assert await call(name, peer, "POST", "/v1/runs", {}) == END


@FLAVOURS
async def test_an_answer_with_an_error_is_raised_and_the_connection_kept(name):
    body = json.dumps({"error": {"code": "busy", "message": "later"}}).encode()
    with Peer(lambda connection, request: connection.sendall(
            b"HTTP/1.1 429 Too Many\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))) as peer:
        client = flavour(name, peer)
        for _ in range(2):
            with pytest.raises(glovebox.RateLimitException, match="later"):
                await client.run("1")
        assert peer.accepted == 1

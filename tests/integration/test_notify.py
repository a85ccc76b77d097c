"""glovebox-notify: signed webhooks that are repeated after failures, checkpoints to a witness; nothing waits for
either."""

import base64
import ctypes
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import queue
import re
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest
from conftest import Glovebox
from described import MOMENT, other_moments
from serving import Serving, state_of_its_own, with_policies
from web_server import WebServer

pytestmark = pytest.mark.usefixtures("python_template")

SECRET = b"k" * 32
POLICIES = {"asked": "approval: {when: [always], expires: 1h}", "shortly": "approval: {when: [always], expires: 1s}"}


class Receiver:
    """Keeps what is posted to it; answers with the next of `answers`, 204 once there are none."""

    def __init__(self, context=None):
        self.got, self.answers, receiver = queue.Queue(), queue.Queue(), self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.put((self.path, dict(self.headers), body))
                status = 204 if receiver.answers.empty() else receiver.answers.get()
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = WebServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self):
        return self.got.get(timeout=20)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def checked(message):
    """The event, after its signature was verified as the specification says; independent of glovebox."""
    _, headers, body = message
    headers = {name.lower(): value for name, value in headers.items()}
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest()).decode()
    assert expected in headers["webhook-signature"].split(" "), headers
    assert abs(time.time() - int(headers["webhook-timestamp"])) < 60 and "." not in headers["webhook-id"]
    told = json.loads(body)
    assert re.fullmatch(MOMENT, told["timestamp"]) and other_moments(told["data"]) == []
    return headers["webhook-id"], told


def secret_file(glovebox):
    path = glovebox.folder / "webhook.secret"
    path.write_text("whsec_" + base64.b64encode(SECRET).decode() + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture(name="place", scope="module")
def place_(tmp_path_factory):
    """A daemon with a webhook and a witness; each test drains what it has caused."""
    glovebox = Glovebox(tmp_path_factory.mktemp("notify"))
    state_of_its_own(glovebox)
    webhook, witness = Receiver(), Receiver()
    with Serving(glovebox, "--webhook", f"http://127.0.0.1:{webhook.port}/hook?a=b",
                 "--webhook-secret", str(secret_file(glovebox)), "--webhook-attempts", "2",
                 "--log-witness", f"http://localhost:{witness.port}/add", "--approval-url", "https://ask.example.org/{id}?from=hook",
                 env=with_policies(glovebox, POLICIES)) as server:
        server.webhook, server.witness = webhook, witness
        yield server
    webhook.close()
    witness.close()


def ask(server, code, policy="asked"):
    answer = server.run(code, policy=policy)
    assert answer.status == 202, answer.body
    return answer.json["approval"]


def metric(server, name, end):
    text = server.call("GET", "/metrics").body.decode()
    [line] = [line for line in text.splitlines() if line.startswith(f'{name}{{end="{end}"}}')] or ["0"]
    return float(line.split()[-1])


def wait_for(what):
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_each_step_is_recorded_and_signed(place):
    approval = ask(place, "print('planted')")
    path, _, body = message = place.webhook.take()
    name, told = checked(message)
    assert path == "/hook?a=b" and name == f"msg_requested_{approval[4:]}"
    assert told["type"] == "approval.requested" and told["data"]["approval"] == approval
    assert told["data"]["state"] == "pending" and told["data"]["policy"] == "asked" and told["data"]["asker"] == "owner"
    assert told["data"]["url"] == f"https://ask.example.org/{approval}?from=hook"
    assert told["data"]["sha256"] == hashlib.sha256(b"print('planted')").hexdigest() and b"planted" not in body
    decided = place.call("POST", f"/v1/approvals/{approval}:decide", {"decision": "deny", "reason": "private words"})
    assert decided.status == 200
    _, _, body = message = place.webhook.take()
    name, told = checked(message)
    assert name == f"msg_decided_{approval[4:]}" and told["type"] == "approval.decided"
    assert told["data"]["state"] == "denied" and told["data"]["approver"] == "owner" and b"private" not in body
    shortly = ask(place, "print(2)", policy="shortly")
    assert checked(place.webhook.take())[1]["type"] == "approval.requested"
    _, told = checked(place.webhook.take())
    assert (told["type"], told["data"]["approval"], told["data"]["state"]) == ("approval.expired", shortly, "expired")


def test_it_comes_again_and_then_no_more(place):
    place.webhook.answers.put(500)
    ask(place, "print(3)")
    first, second = place.webhook.take(), place.webhook.take()
    assert checked(first) == checked(second), "the same id and the same words, so that it can be told apart"
    failed = metric(place, "glovebox_webhooks_total", "failed")
    for answer in (500, 500):
        place.webhook.answers.put(answer)
    ask(place, "print(4)")
    assert checked(place.webhook.take()) == checked(place.webhook.take())
    wait_for(lambda: metric(place, "glovebox_webhooks_total", "gave_up") == 1)
    assert metric(place, "glovebox_webhooks_total", "failed") == failed + 1 == 2
    said = place.log.read_text()
    assert "webhook.gave_up" in said and 'cause="it answered 500"' in said
    place.webhook.answers.put(302)
    ask(place, "print(5)")
    assert place.webhook.take()[0] == "/hook?a=b"
    wait_for(lambda: metric(place, "glovebox_webhooks_total", "gave_up") == 2)
    assert place.webhook.got.empty(), "no redirect is followed"


def test_a_receiver_that_does_not_answer_blocks_no_other(place):
    """The place hangs and then is gone; asking, deciding and running go on, and glovebox-notify comes back."""
    held = threading.Event()
    taken = place.webhook.server.RequestHandlerClass.do_POST
    place.webhook.server.RequestHandlerClass.do_POST = lambda self: held.wait(60)
    try:
        for number in range(12):  # more than are under way at once
            ask(place, f"print('held', {number})")
        assert place.run("print(6)").json["stdout"] == "6\n"
        os.kill(place.children()["glovebox-notify"], signal.SIGKILL)
        wait_for(lambda: metric(place, "glovebox_webhooks_total", "lost") == 12)
    finally:
        place.webhook.server.RequestHandlerClass.do_POST = taken
        held.set()
    wait_for(lambda: "glovebox-notify" in place.children())
    approval = ask(place, "print(7)")
    while checked(place.webhook.take())[1]["data"]["approval"] != approval:
        pass  # what the one that was killed had not read yet comes before it


def socket_of(pid):
    """A copy of its socket to gloveboxd."""
    handle = os.pidfd_open(pid)
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            fd = ctypes.CDLL(None, use_errno=True).syscall(438, handle, int(name), 0)  # pidfd_getfd
            assert fd >= 0, os.strerror(ctypes.get_errno())
            if os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
                found = socket.socket(fileno=fd)  # a dup() of Python's would make it blocking, for its owner too
                if found.type & 15 == socket.SOCK_SEQPACKET:
                    return found
                found.close()
            else:
                os.close(fd)
    finally:
        os.close(handle)
    raise AssertionError("it has none")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a descriptor of another process")
def test_malformed_messages_are_dropped_and_later_ones_answered(place):
    """Nothing of it counts, and it is said once; of what comes after it everything counts, of the next start too."""
    def dropped():
        [line] = [line for line in place.call("GET", "/metrics").body.decode().splitlines()
                  if line.startswith("glovebox_notify_malformed_total ")]
        return int(line.split()[1])

    def heard():
        before = metric(place, "glovebox_webhooks_total", "delivered")
        ask(place, f"print('heard', {before})")
        wait_for(lambda: metric(place, "glovebox_webhooks_total", "delivered") > before)
    with socket_of(place.children()["glovebox-notify"]) as end:
        for nonsense in (b"", b"x", b"\2\0\0\0too short", b"\2\0\0\0" + b"\xff" * 312, b"\7" * 900, b"y" * 2000):
            end.send(nonsense)
    wait_for(lambda: dropped() == 6)
    heard()
    assert place.log.read_text().count("notify.failed") == 1
    os.kill(place.children()["glovebox-notify"], signal.SIGKILL)
    heard()
    while not place.webhook.got.empty():
        place.webhook.got.get()


def test_it_may_do_nothing_else(place):
    """A user of its own, no capability, a filter, an empty environment."""
    pid = place.children()["glovebox-notify"]
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1"
    if os.geteuid() == 0:
        daemon = pathlib.Path(f"/proc/{place.children()['gloveboxd']}").stat().st_uid
        assert status["Uid"].split()[0] not in ("0", str(daemon)) and status["CapEff"].strip("0") == ""
        assert pathlib.Path(f"/proc/{pid}/environ").read_bytes() == b""


def test_a_witness_gets_checkpoints_that_verify(place):
    """The newest is the one that counts: what the witness was told last, `log verify` takes for kept."""
    while not place.witness.got.empty():
        place.witness.got.get()
    place.witness.answers.put(503)  # it is sent again
    place.run("print(8)")
    path, headers, _ = place.witness.take()
    assert path == "/add" and headers["Content-Type"].startswith("text/plain")
    _, _, kept = place.witness.take()
    file = place.glovebox.folder / "kept.txt"
    file.write_bytes(kept)
    key = place.glovebox("log", "key").stdout
    (place.glovebox.folder / "kept.pub").write_bytes(key)
    done = place.glovebox("log", "verify", "--key", str(place.glovebox.folder / "kept.pub"), "--checkpoint", str(file))
    assert done.returncode == 0, done.stderr + done.stdout
    wait_for(lambda: metric(place, "glovebox_witness_total", "failed") >= 1)


def test_certificates_are_checked_and_the_last_word_arrives(glovebox):
    """Over TLS: a server that is not trusted gets nothing. The last checkpoint comes before the end."""
    certificate, key = glovebox.folder / "cert", glovebox.folder / "key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key,
                    "-out", certificate, "-subj", "/CN=witness", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    state_of_its_own(glovebox)
    receiver = Receiver(context)
    url = f"https://127.0.0.1:{receiver.port}/"
    with Serving(glovebox, "--log-witness", url, tcp=False) as server:
        server.run("print(1)")
        wait_for(lambda: "witness.failed" in server.log.read_text())
        assert "certificate" in server.log.read_text() and receiver.got.empty()
    with Serving(glovebox, "--log-witness", url, "--ca-file", str(certificate), tcp=False) as server:
        server.run("print(1)")
        assert b"glovebox/" in receiver.take()[2]
        server.run("print(2)")
    last = None
    while not receiver.got.empty():
        last = receiver.take()[2]
    assert last == glovebox("log", "checkpoint").stdout, "the last one came before the end"
    receiver.close()


@pytest.mark.parametrize("arguments, cause", [
    (("--webhook", "http://192.0.2.1/"), "unencrypted"),
    (("--webhook", "ftp://a.example/"), "takes an https:// URL"),
    (("--log-witness", "https://user@a.example/"), "without user"),
    (("--webhook", "https://a.example/"), "name the file of its secret"),
    (("--webhook", "https://a.example/", "--webhook-secret", "OPEN"), "others may use it"),
])
def test_what_cannot_be_used_is_reported_at_the_start(glovebox, arguments, cause):
    state_of_its_own(glovebox)
    secret = secret_file(glovebox)
    secret.chmod(0o644)
    arguments = [str(secret) if argument == "OPEN" else argument for argument in arguments]
    done = glovebox("serve", "--socket", str(glovebox.folder / "s"), *arguments)
    assert done.returncode != 0 and cause in done.stderr.decode(), done.stderr

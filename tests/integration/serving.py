"""serving.py - a `glovebox serve` for tests: its sockets, its keys, its log."""

import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import pty
import random
import shutil
import signal
import socket
import subprocess
import time

TOP = pathlib.Path(__file__).resolve().parents[2]


def free_port():
    """None of those that the kernel hands out: between two moments anybody could be given one of them."""
    while True:
        port = random.randrange(10000, 32000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def let_others_in(path):
    """pytest keeps other users out of its folders; sandboxes have users of their own."""
    for folder in (path, *path.parents):
        if not folder.stat().st_mode & 0o1:
            folder.chmod(folder.stat().st_mode | 0o11)


def state_of_its_own(glovebox):
    """Templates are shared with other tests, keys and artifacts are not."""
    state = glovebox.folder / "state"
    state.mkdir()
    let_others_in(glovebox.folder)
    (state / "templates").symlink_to(glovebox.state / "templates")
    glovebox.state = state
    return state


def with_policies(glovebox, texts):
    """The environment of a service that has these policies, each of them over `minimal`, beside those that come along."""
    policies = glovebox.folder / "policies"
    policies.mkdir()
    for name, text in texts.items():
        (policies / f"{name}.yaml").write_text(f"name: {name}\nextends: minimal\n{text}\n")
    policies.chmod(0o755)
    return {"GLOVEBOX_POLICIES": f"{policies}:{TOP / 'policies'}"}


def keep_for_fuzzers(path, body):
    """With GLOVEBOX_KEEP_REQUESTS=BUILD/fuzz/found, where tools/fuzz-corpus finds it. The first byte: in pieces of 256."""
    kept = os.environ.get("GLOVEBOX_KEEP_REQUESTS")
    if kept and path == "/v1/runs" and body:
        folder = pathlib.Path(kept, "fuzz_request.corpus")
        folder.mkdir(parents=True, exist_ok=True)
        data = b"\xff" + (body if isinstance(body, bytes) else body.encode())
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def begin_on_terminal(words, environment):
    """The program on a terminal of its own; gives its pid and the other end. What could not be started says why there: pytest must
    not go on in the child, beside itself."""
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            os.execve(words[0], [str(word) for word in words], environment)
        except OSError as why:
            os.write(2, f"{words[0]}: {why}\n".encode())
        finally:
            os._exit(127)
    return pid, terminal


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)


class Serving:
    """Ends with its `with` block."""

    def __init__(self, glovebox, *arguments, env=None, tcp=True, slots=8):
        self.glovebox = glovebox
        self.socket = str(glovebox.folder / "s")
        self.log = glovebox.folder / "serve.log"
        arguments = ["serve", "--socket", self.socket, "--slots", str(slots), *arguments]
        for _ in range(5):
            self.port = free_port() if tcp else None
            if self.start(arguments + (["--listen", f"127.0.0.1:{self.port}"] if tcp else []), env):
                return
        raise AssertionError(self.log.read_text())

    def start(self, arguments, env):
        """False if somebody else has taken the port that was free a moment ago."""
        before = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self.process = self.glovebox.start(*arguments, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                if self.call("GET", "/healthz").status == 200:
                    return True
            except OSError:
                pass
            if self.process.poll() is not None:
                said = self.log.read_text()[before:]
                assert "Address already in use" in said, said
                return False
            time.sleep(0.05)
        self.process.kill()
        self.process.wait()
        raise AssertionError(self.log.read_text())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def key(self, *arguments):
        """Makes a key; gives what `key create --json` says."""
        done = self.glovebox("key", "create", "--json", *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def open(self, method, path, body=None, key=None, headers=None, tcp=None):
        """By the Unix socket as its owner; with a key, by TCP."""
        tcp = (key is not None) if tcp is None else tcp
        headers = dict(headers or {})
        if key is not None:
            headers["Authorization"] = "Bearer " + (key if isinstance(key, str) else key["key"])
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        if not tcp:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(60)
            connection.sock.connect(self.socket)
        body = body if body is None or isinstance(body, bytes) else json.dumps(body)
        keep_for_fuzzers(path, body)
        try:
            connection.request(method, path, body, headers)
        except BrokenPipeError:
            pass  # refused before its body was read; the answer is there
        return connection.getresponse()

    def call(self, method, path, body=None, **how):
        return Answer(self.open(method, path, body, **how))

    def run(self, code, key=None, **request):
        return self.call("POST", "/v1/runs", {"code": code, "language": "python", "policy": "minimal"} | request,
                         key=key)

    def children(self):
        pid = self.process.pid
        found = {}
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(FileNotFoundError):  # it has just ended
                found[pathlib.Path(f"/proc/{child}/exe").readlink().name] = int(child)
        return found

    def reload(self):
        """SIGHUP, and what the log says about it."""
        before = len(self.log.read_text())
        self.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            said = self.log.read_text()[before:]
            if "config.reloaded" in said or "config.refused" in said:
                return said
            time.sleep(0.02)
        raise AssertionError(self.log.read_text())


def remove_state(glovebox):
    shutil.rmtree(glovebox.folder / "state", ignore_errors=True)

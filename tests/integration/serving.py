"""serving.py - a `glovebox serve` for tests: its sockets, its keys, its log."""

import http.client
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import time


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


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
        self.port = free_port() if tcp else None
        self.log = glovebox.folder / "serve.log"
        listen = ["--listen", f"127.0.0.1:{self.port}"] if tcp else []
        with open(self.log, "ab") as log:
            self.process = glovebox.start("serve", "--socket", self.socket, "--slots", str(slots), *listen, *arguments,
                                          env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                if self.call("GET", "/healthz").status == 200:
                    return
            except OSError:
                pass
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)
        self.process.kill()
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
        try:
            connection.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body),
                               headers)
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
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return {pathlib.Path(f"/proc/{child}/exe").readlink().name: int(child) for child in text.split()}

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

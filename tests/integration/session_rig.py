"""A daemon under `glovebox serve`, and its sessions as a client sees them."""

import contextlib
import http.client
import json
import pathlib
import signal
import socket
import struct
import time


class Started:
    """A `glovebox serve` of a test; `get` is how its kind asks it: (status, JSON)."""

    def start(self, glovebox, folder, *words, env=None):
        self.path, self.folder = str(folder / "s"), folder
        self.log = open(folder / "log", "a+", encoding="utf-8")
        self.process = glovebox.start("serve", "--socket", self.path, *map(str, words), env=env, stderr=self.log)

    def wait_until_it_serves(self):
        for _ in range(1200):
            try:
                if self.get("/healthz")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def connect(self):
        peer = socket.socket(socket.AF_UNIX)
        # Blocking: with a timeout of Python's own, connect() fails with EAGAIN while the backlog is full.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 60, 0))
        peer.connect(self.path)
        peer.settimeout(60)
        return peer

    def idle(self):
        """Waits until no sandbox is in use."""
        for _ in range(1500):
            if self.get("/healthz")[1]["in_use"] == 0:
                return
            time.sleep(0.02)
        raise AssertionError("a sandbox is still in use")

    def daemon_pid(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        for pid in children.split():
            if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("gloveboxd"):
                return int(pid)
        raise AssertionError("no gloveboxd")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0
        log = (self.folder / "log").read_text()
        assert "Sanitizer" not in log and "cannot_start" not in log, log


class Daemon(Started):
    def __init__(self, glovebox, folder, slots=12, policies=None, settings=()):
        self.start(glovebox, folder, "--slots", slots, *settings, env={"GLOVEBOX_POLICIES": policies} if policies else None)
        self.wait_until_it_serves()

    def get(self, path):
        return self.call("GET", path)

    def open(self, method, path, body=None, headers=()):
        connection = http.client.HTTPConnection("localhost", timeout=60)
        connection.sock = self.connect()
        with contextlib.suppress(BrokenPipeError):  # refused before the body was read
            connection.request(method, path, json.dumps(body).encode() if body is not None else None, dict(headers))
        return connection.getresponse()

    def call(self, method, path, body=None):
        response = self.open(method, path, body)
        return response.status, json.loads(response.read() or b"null")

    def session(self, **request):
        for _ in range(4):  # on a busy machine the first zygote may not be warm in time
            status, answer = self.call("POST", "/v1/sessions", {"policy": "data"} | request)
            if status == 201 or answer["error"]["code"] not in ("timeout", "busy"):
                break
            time.sleep(0.2)
        assert status == 201, answer
        return Session(self, answer)


class Session:
    def __init__(self, daemon, answer):
        self.daemon, self.answer = daemon, answer
        self.place = f"/v1/sessions/{answer['id']}"

    def call(self, method, path="", body=None):
        return self.daemon.call(method, self.place + path, body)

    def get(self):
        status, answer = self.call("GET")
        assert status == 200, answer
        return answer

    def run(self, code, context="python", **request):
        status, answer = self.call("POST", f"/contexts/{context}/run", {"code": code} | request)
        assert status == 200, answer
        return answer

    def value(self, code, context="python"):
        """The text of the value of the last expression."""
        result = self.run(code, context)
        assert result["status"] == "ok", result
        return result["results"][-1]["data"]["text/plain"]

    def begin(self, code, context="python", **request):
        """Starts a cell and returns its stream of events; it runs when the first has come."""
        response = self.daemon.open("POST", f"{self.place}/contexts/{context}/run", {"code": code} | request,
                                    {"Accept": "text/event-stream"})
        assert response.status == 200
        return Events(response)

    def end(self):
        status, answer = self.call("DELETE")
        assert status == 200 and answer["state"] == "ended", answer
        return answer


class Events:
    def __init__(self, response):
        self.response = response

    def next(self):
        name = self.response.readline().decode().strip()
        data = self.response.readline().decode().strip()
        while self.response.readline().strip():
            pass  # the event's id
        assert name.startswith("event: ") and data.startswith("data: "), (name, data)
        return name[7:], json.loads(data[6:])

    def until(self, wanted):
        while True:
            name, data = self.next()
            if name == wanted:
                return data

    def hang_up(self):
        self.response.close()

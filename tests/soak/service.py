"""service.py - a `glovebox serve` of its own for tests that press it hard, and callers over its Unix socket."""

import http.client
import json
import os
import pathlib
import socket
import subprocess
import time

TOP = pathlib.Path(__file__).resolve().parents[2]


class Caller:
    """One connection that is kept, as an agent's client keeps it. Not for two threads at once."""

    def __init__(self, path):
        self.path = path
        self.connection = None

    def call(self, method, path, body=None):
        """(status, answer). A connection that the service has closed is opened again once."""
        for is_last in (False, True):
            if self.connection is None:
                self.connection = http.client.HTTPConnection("localhost", timeout=120)
                self.connection.sock = socket.socket(socket.AF_UNIX)
                self.connection.sock.settimeout(120)
                self.connection.sock.connect(self.path)
            try:
                self.connection.request(method, path, body)
                response = self.connection.getresponse()
                return response.status, json.loads(response.read())
            except (OSError, http.client.HTTPException):
                self.connection = None
                if is_last:
                    raise

    def run(self, **request):
        """The result of one run; waits while the queue is full."""
        body = json.dumps({"language": "python", "policy": "data"} | request).encode()
        while True:
            status, answer = self.call("POST", "/v1/runs", body)
            if status != 429:
                return status, answer
            time.sleep(0.02)


def state_of_its_own(templates, folder):
    """Templates are shared; receipts, runs and sessions are not: another daemon would take over what was lost."""
    state = pathlib.Path(folder, "state")
    state.mkdir()
    for above in (state, *state.parents):
        if not above.stat().st_mode & 0o1:  # sandboxes have users of their own
            above.chmod(above.stat().st_mode | 0o11)
    (state / "templates").symlink_to(pathlib.Path(templates, "templates").resolve())
    return str(state)


class Service:
    """Ends with its `with` block, and says so if it did not serve or does not end."""

    def __init__(self, build, folder, slots, *arguments):
        self.socket = f"{folder}/socket"
        self.log = open(f"{folder}/log", "w", encoding="utf-8")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GLOVEBOX_")}
        state = state_of_its_own(os.environ.get("GLOVEBOX_STATE", f"{build}/state"), folder)
        self.process = subprocess.Popen([f"{build}/glovebox", "serve", "--socket", self.socket, "--slots", str(slots), *arguments],
                                        env=kept | {"GLOVEBOX_STATE": state, "GLOVEBOX_MEASURE_TEMPLATES": "false"}, stderr=self.log)

    def __enter__(self):
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if Caller(self.socket).call("GET", "/healthz")[0] == 200:
                    return self
            except OSError:
                time.sleep(0.05)
        self.log.flush()
        raise RuntimeError(f"glovebox serve does not serve: {pathlib.Path(self.log.name).read_text(encoding='utf-8')[-2000:]}")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()

"""glovebox_server.py - `glovebox serve` for the escape tests: as root or as an ordinary user, with a host around it
that holds what attempts look for."""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time

import pytest

from host import SECRET, make_host

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GLOVEBOX_BUILD", TOP / "build")).resolve()
STATE = pathlib.Path(os.environ.get("GLOVEBOX_STATE", BUILD / "state")).resolve()
WALL_ROWS = [line.split("(")[1].split(",")[0]
             for line in (TOP / "src/model/walls.def").read_text(encoding="utf-8").splitlines()
             if line.startswith("WALL(")]
TEST_ID = 61234  # an ordinary user that nobody else is
HOST_PROGRAM = pathlib.Path(__file__).resolve().with_name("host.py")


def build_with_disable_wall():
    """Programs in which walls can be disabled; never installed. Gives their folder, which is kept for the next time:
    BUILD/disable-wall, or GLOVEBOX_DISABLE_WALL_BUILD."""
    folder = pathlib.Path(os.environ.get("GLOVEBOX_DISABLE_WALL_BUILD", BUILD / "disable-wall"))
    if not shutil.which("meson"):
        pytest.skip("no compiler here: the walls are disabled one by one where glovebox is built")
    for command in ([] if (folder / "build.ninja").exists() else [
            ["meson", "setup", "-Ddisable_wall=true", "-Dtests=false", "-Doptimization=0",
             "-Dwerror=false", folder, TOP]]) + [["ninja", "-C", folder, "-j2"]]:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-3000:]
    return folder


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)
        self.kept = self.sock  # http.client hands it to the answer and forgets it

    def hang_up(self):
        with contextlib.suppress(OSError):
            self.kept.shutdown(socket.SHUT_RDWR)


class Server:
    """A daemon and the host around it, until the end of the with block. With a wall disabled, that host is in
    namespaces of its own (host.py), so that an attempt that gets out meets nothing of this machine."""

    def __init__(self, folder, mode, policies, programs=None, disabled=()):
        if mode == "root" and os.geteuid() != 0:
            pytest.skip("needs root")
        self.folder, self.mode, self.policies = pathlib.Path(folder), mode, policies
        self.programs, self.disabled = programs, disabled
        self.socket = self.folder / "glovebox.sock"
        self.canary = self.folder / "canary.txt"
        self.degraded, self.open, self.process, self.host = [], [], None, None

    def __enter__(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GLOVEBOX_")}
        environment |= {"GLOVEBOX_STATE": str(STATE), "GLOVEBOX_MEASURE_TEMPLATES": "false", "GLOVEBOX_POLICIES": str(self.policies),
                        "GLOVEBOX_RUNTIME": str(self.folder), "ESCAPE_SECRET": SECRET,
                        "HOME": str(self.folder)}
        command = [f"{self.programs or BUILD}/glovebox", "serve", "--socket", str(self.socket), "--slots", "8"]
        if self.disabled:
            environment["GLOVEBOX_DISABLE_WALL"] = str(sum(1 << WALL_ROWS.index(wall) for wall in self.disabled))
            command = [sys.executable, "-B", str(HOST_PROGRAM), str(self.folder), *command]
        else:
            self.host, self.open = make_host(self.folder, STATE, self.socket)
        identity = {}
        if self.mode == "user" and os.geteuid() == 0:
            identity = {"user": TEST_ID, "group": TEST_ID, "extra_groups": []}
            os.chown(self.folder, TEST_ID, TEST_ID)
            self.open_way()
        self.log = open(self.folder / "serve.log", "wb")
        self.process = subprocess.Popen(command, env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, **identity)
        try:
            self.wait_until_ready()
        except BaseException:
            self.process.terminate()
            self.process.wait(30)
            raise
        return self

    def open_way(self):
        """pytest's folders are root's own; the test user has to come through."""
        for folder in [self.folder, *self.folder.parents]:
            if folder.stat().st_mode & 0o111 != 0o111:
                folder.chmod(folder.stat().st_mode | 0o111)

    def wait_until_ready(self):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                self.host = self.host or json.loads((self.folder / "host.json").read_text(encoding="utf-8"))
                # With a rate, so that the wall that stands only then is reported as standing or degraded.
                result = self.run(code="print('up')", limits={"disk_read_rate_bytes": 1 << 30})
                assert result["stdout"] == "up\n", result
                self.degraded = result["isolation"]["degraded"]
                self.walls = result["isolation"]["walls"]
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        log = (self.folder / "serve.log").read_text(encoding="utf-8", errors="replace")
        self.__exit__()
        raise RuntimeError(f"glovebox serve does not answer: {log[-2000:]}")

    def request(self, body, accept="application/json", timeout=180):
        connection = UnixConnection(self.socket, timeout)
        connection.request("POST", "/v1/runs", json.dumps(body),
                           {"Content-Type": "application/json", "Accept": accept})
        return connection, connection.getresponse()

    def run(self, code, files=(), **more):
        files = [{"path": "host.json", "content": json.dumps(self.host)}, *files]
        connection, answer = self.request({"code": code, "language": "python", "policy": "escape", "files": files,
                                           **more})
        text = answer.read()
        connection.close()
        result = json.loads(text)
        assert answer.status == 200, f"{answer.status}: {text[:2000]}"
        return result

    def start_neighbour(self, code):
        """Another sandbox beside the ones that try; it lives until the daemon ends."""
        arguments = ["own-id"] if self.mode == "root" else []
        connection, answer = self.request({"code": code, "language": "python", "policy": "escape", "args": arguments,
                                           "limits": {"wall_ms": 590000, "cpu_ms": 590000}},
                                          accept="text/event-stream")
        seen = b""
        while b"ready" not in seen:
            piece = answer.read1(65536)
            assert piece, f"the neighbour ended: {seen[-2000:]}"
            seen += piece
        self.open.append(connection.hang_up)
        threading.Thread(target=drain, args=(answer,), daemon=True).start()

    def __exit__(self, *_):
        for close in self.open:
            with contextlib.suppress(OSError):
                close()
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()


def drain(answer):
    with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
        while answer.read1(65536):
            pass

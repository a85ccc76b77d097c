"""The attempts of escapes.def from inside a session that lives on, beside a neighbour that is a session too; then what one
session can do to another by using up whatever there is. Each must leave the neighbour, the daemon and the host alone."""

import contextlib
import json
import pathlib
import platform
import threading
import time

import pytest

from glovebox_server import Server, UnixConnection
from test_escapes import HERE, ROWS, TOGETHER

POLICIES = HERE / "policies"


class Session:
    def __init__(self, server, policy="escape", **request):
        self.server = server
        status, answer = self.ask("POST", "/v1/sessions", {"policy": policy} | request)
        assert status == 201, answer
        self.place = f"/v1/sessions/{answer['id']}"

    def branch(self):
        """Another session, that is what this one is now."""
        status, answer = self.ask("POST", f"{self.place}/branch", {})
        assert status == 201, answer
        other = object.__new__(Session)
        other.server, other.place = self.server, f"/v1/sessions/{answer['id']}"
        return other

    def open(self, method, path, body=None, accept="application/json"):
        connection = UnixConnection(self.server.socket, 180)
        body = body if body is None or isinstance(body, bytes) else json.dumps(body)
        connection.request(method, path, body, {"Accept": accept})
        return connection, connection.getresponse()

    def ask(self, method, path, body=None):
        connection, answer = self.open(method, path, body)
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text or b"null")

    def run(self, code, context="python", **request):
        status, result = self.ask("POST", f"{self.place}/contexts/{context}/run", {"code": code} | request)
        assert status == 200, result
        return result

    def begin(self, code, context="python", **request):
        """A cell that goes on; gives its connection and answer, after its first output."""
        connection, answer = self.open("POST", f"{self.place}/contexts/{context}/run", {"code": code} | request,
                                       "text/event-stream")
        seen = b""
        while b"event: stdout" not in seen:
            piece = answer.read1(65536)
            assert piece, seen
            seen += piece
        return connection, answer

    def start(self, *command):
        status, process = self.ask("POST", f"{self.place}/processes", {"command": list(command)})
        assert status == 201, process
        return process

    def put(self, path, text):
        status, answer = self.ask("PUT", f"{self.place}/files/{path}", text.encode())
        assert status in (200, 201), answer

    def end(self):
        self.ask("DELETE", self.place)


@pytest.fixture(scope="module", params=["root", "user"])
def server(request, tmp_path_factory):
    with Server(tmp_path_factory.mktemp(f"session-{request.param}"), request.param, POLICIES) as server:
        yield server


@pytest.fixture
def two(server):
    """The one that tries, and its neighbour, who has names to lose."""
    with contextlib.ExitStack() as stack:
        pair = []
        for _ in range(2):
            pair.append(Session(server))
            stack.callback(pair[-1].end)
        pair[1].run("kept = list(range(1000))\nopen('mine', 'w').write('kept')")
        yield pair
        told = pair[1].run("print(len(kept), open('mine').read())")
        assert (told["status"], told["stdout"]) == ("ok", "1000 kept\n"), told


# --- the attempts -------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module", params=["session", "branch"])
def tried(server, request):
    neighbour, session = Session(server), Session(server)
    if request.param == "branch":  # its parent is a neighbour, too
        session.run("round = 0")
        neighbour.end()
        neighbour, session = session, session.branch()
    try:
        neighbour.put("neighbour.py", (HERE / "neighbour.py").read_text(encoding="utf-8"))
        neighbour.start("python3", "neighbour.py", "own-id")
        session.put("host.json", json.dumps(server.host))
        rows = [row for row in ROWS if row.kind == "ATTEMPT"]
        session.put("attempts/escape.py", (HERE / "attempts/escape.py").read_text(encoding="utf-8"))
        for row in rows:
            session.put(f"attempts/{row.name}.py", row.text)
        session.put("run_attempts.py", (HERE / "run_attempts.py").read_text(encoding="utf-8"))
        said = {}
        for first in range(0, len(rows), TOGETHER):
            names = [row.name for row in rows[first:first + TOGETHER]]
            result = session.run("import runpy, sys\nround = globals().get('round', 0) + 1\n"
                                 f"sys.argv = ['run_attempts.py', *{names!r}]\nrunpy.run_path('run_attempts.py')",
                                 limits={"wall_ms": 120000, "cpu_ms": 120000})
            for line in result["stdout"].splitlines():
                if line.startswith("@escape "):
                    _, name, what = line.split(" ", 2)
                    said[name] = what
            for name in names:
                said.setdefault(name, f"said nothing: {result['status']} {result['error']} {result['stderr'][-300:]}")
        rounds = session.run("print(round)")["stdout"]
        assert rounds == f"{-(-len(rows) // TOGETHER)}\n", "the context did not live through it"
        return said
    finally:
        neighbour.end()
        session.end()


def needs(server, wall):
    if wall in server.degraded:
        pytest.skip(f"{wall} is degraded in this mode, and receipts say so")


# As an ordinary user test_escapes.py tries them; a session has the same walls.
@pytest.mark.parametrize("server", ["root"], indirect=True)
@pytest.mark.parametrize("row", [row for row in ROWS if row.kind == "ATTEMPT"], ids=lambda row: row.name)
def test_what_stops_a_run_stops_a_session(server, tried, row):
    needs(server, row.wall)
    assert row.accepts(tried[row.name]), (row.wall, row.expected, tried[row.name])


# --- the neighbour ------------------------------------------------------------------------------------------------

def test_it_is_not_seen_and_not_signalled(two):
    session, neighbour = two
    neighbour.start("sleep", "97")
    result = session.run("import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                         "seen = [open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') if p.isdigit()]\n"
                         "print(any('97' in line for line in seen), os.path.exists('mine'))\n"
                         "for pid in [*range(2, 400)]:\n"
                         "  if pid != os.getpid():\n"
                         "    try: os.kill(pid, 9)\n    except OSError: pass")
    assert result["stdout"] == "False False\n", result
    running = neighbour.ask("GET", f"{neighbour.place}/processes")[1]["processes"]
    assert [process["state"] for process in running] == ["running"]


def test_a_full_disk_is_the_own(two):
    session, neighbour = two
    filled = session.run("files = [open(f'big{n}', 'wb', 0) for n in range(8)]\ntry:\n"
                         "  while True: [file.write(bytes(1 << 20)) for file in files]\nexcept OSError as e: print(e.errno)\n"
                         "try:\n  for n in range(100000): open(f'/tmp/{n}', 'w').close()\nexcept OSError as e: print(e.errno)")
    assert filled["stdout"] in ("28\n28\n", "122\n122\n"), filled
    assert neighbour.run("print(open('own', 'wb').write(bytes(8 << 20)))")["stdout"] == f"{8 << 20}\n"


def test_used_up_memory_is_the_own(server, two):
    needs(server, "cgroup_memory")
    session, neighbour = two
    result = session.run("held = []\nwhile True: held.append(bytearray(1 << 24))")
    assert result["status"] in ("limit", "error"), result
    assert neighbour.run("print(len(bytearray(64 << 20)))")["stdout"] == f"{64 << 20}\n"
    assert session.run("1 + 1")["status"] == "ok"


def test_used_up_processes_are_the_own(server, two):
    needs(server, "cgroup_pids")
    session, neighbour = two
    result = session.run("import os, time\nmade = 0\ntry:\n  while made < 2000:\n    if os.fork() == 0:\n      time.sleep(60)\n"
                         "      os._exit(0)\n    made += 1\nexcept OSError as e: print(e.errno, made < 64)")
    assert result["stdout"] == "11 True\n", result
    assert neighbour.run("import subprocess\nprint(subprocess.run(['echo', 'a'], capture_output=True).stdout)")["stdout"] == \
        "b'a\\n'\n"
    session.ask("POST", f"{session.place}/contexts/python/restart")
    assert session.run("print(1)")["stdout"] == "1\n"


def test_used_up_descriptors_are_the_own(two):
    session, neighbour = two
    result = session.run("import os\nheld = []\ntry:\n  while True: held.append(os.open('/dev/null', 0))\n"
                         "except OSError as e: code = e.errno\nfor fd in held: os.close(fd)\nprint(code)")
    assert result["stdout"] == "24\n", result
    assert neighbour.run("held = [open('/dev/null') for _ in range(500)]\nprint(len(held))\ndel held")["stdout"] == "500\n"


def test_ports_and_names_are_the_own(server):
    one, other = Session(server, "loopback"), Session(server, "loopback")
    try:
        code = ("import socket\ntcp = socket.create_server(('127.0.0.1', 8080))\nname = socket.socket(socket.AF_UNIX)\n"
                "name.bind('\\0one-name')\nname.listen()\nprint('bound')")
        assert one.run(code)["stdout"] == "bound\n"
        reached = other.run("import socket\nfor family, place in ((socket.AF_INET, ('127.0.0.1', 8080)), (socket.AF_UNIX, '\\0one-name')):\n"
                            "  try: socket.socket(family).connect(place)\n  except OSError as e: print(e.errno)")
        assert reached["stdout"] == "111\n111\n", reached
        assert other.run(code)["stdout"] == "bound\n"
    finally:
        one.end()
        other.end()


def test_kernel_keyrings_are_not_reachable(two):
    session, neighbour = two
    add_key, request_key = {"aarch64": (217, 218)}.get(platform.machine(), (248, 249))
    code = ("import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
            f"print(libc.syscall({add_key}, b'user', b'name', b'secret', 6, -3), ctypes.get_errno() in (1, 38))\n"
            f"print(libc.syscall({request_key}, b'user', b'name', None, -3), ctypes.get_errno() in (1, 38))")
    assert session.run(code)["stdout"] == neighbour.run(code)["stdout"] == "-1 True\n-1 True\n"


@pytest.mark.alone  # processor time is compared
def test_it_is_slowed_by_no_more_than_its_share(server, two):
    needs(server, "cgroup_cpu")
    session, neighbour = two
    connection, _ = session.begin("import os, time\nfor _ in range(40):\n  if os.fork() == 0:\n    while True: pass\n"
                                  "print('busy', flush=True)\ntime.sleep(60)")
    code = ("import time\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass\n")
    result = neighbour.run(code)
    used = neighbour.ask("GET", neighbour.place)[1]["usage"]["cpu_ms"]
    connection.hang_up()
    session.ask("POST", f"{session.place}/contexts/python/restart")
    session.run("1")
    busy = session.ask("GET", session.place)[1]["usage"]["cpu_ms"]
    # One busy process beside forty in another session: shares are of sessions, not of processes.
    assert result["status"] == "ok" and used * 12 > busy > 0, (used, busy)


def memory_of(server):
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            status = (folder / "status").read_text(encoding="utf-8")
            if status.startswith("Name:\tgloveboxd\n") and f"PPid:\t{server.process.pid}\n" in status:
                return int(status.split("VmRSS:")[1].split()[0]) >> 10
    raise AssertionError("no gloveboxd")


def test_unread_output_fills_no_buffer_of_the_daemon(server, two):
    session, neighbour = two
    neighbour.run("1")
    before = memory_of(server)
    for _ in range(12):
        session.start("sh", "-c", "yes 0123456789012345678901234567890123456789")
    session.run("open('big', 'wb').write(bytes(16 << 20))")
    slow = [session.open("GET", f"{session.place}/files/big") for _ in range(12)]
    watches = [session.open("GET", f"{session.place}/files:watch?path=/tmp") for _ in range(4)]
    connection, _ = session.begin("import os\nprint('begun', flush=True)\n"
                                  "while True: os.write(1, b'x' * 65536)", limits={"output_bytes": 1 << 20})
    flood = threading.Thread(target=lambda: session.run(
        "for i in range(3000):\n  open(f'/tmp/{i}', 'w').close(); open(f'/tmp/{i}', 'a').close()", "bash"))
    flood.start()
    took = []
    for _ in range(20):
        begin = time.monotonic()
        assert neighbour.run("print(1)")["stdout"] == "1\n"
        took.append(time.monotonic() - begin)
        time.sleep(0.05)
    flood.join()
    assert sorted(took)[10] < 2, took
    assert memory_of(server) - before < 64, "MiB"
    for held, _ in slow + watches:
        held.hang_up()
    connection.hang_up()

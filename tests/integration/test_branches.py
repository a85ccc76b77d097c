"""Branches, checkpoints and the way back: what is carried, that nothing is shared, and that nothing is left (decision 0070)."""

import concurrent.futures
import contextlib
import datetime
import json
import os
import socket
import time

import pytest
from zygote_rig import enum_of


@pytest.fixture
def session(daemon):
    made = daemon.session()
    yield made
    made.call("DELETE")


@pytest.fixture
def branch(daemon):
    """Makes branches that end with the test."""
    import session_rig
    made = []

    def make(parent, status=201, **wishes):
        got, answer = parent.call("POST", "/branch", wishes)
        assert got == status, answer
        if status != 201:
            return answer["error"]
        made.append(session_rig.Session(daemon, answer))
        return made[-1]

    yield make
    for one in made:
        one.call("DELETE")


def checkpoint(session, name=None, **more):
    status, answer = session.call("POST", "/checkpoints", ({"name": name} if name else {}) | more)
    assert status == 201, answer
    return answer["id"]


STATE = """
import collections, contextlib, io, os, random, re, decimal, threading
import numpy as np, pandas as pd
frame = pd.DataFrame({'a': range(1000), 'b': np.linspace(0, 1, 1000)})
log = open('log.txt', 'w+'); _ = log.write('first\\n'); log.flush()
def counting():
    n = 0
    while True:
        n += 1
        yield n
counter = counting(); _ = next(counter), next(counter)
random.seed(7); _ = random.random(); generator = np.random.default_rng(3); _ = generator.random()
class Account:
    total = 0
    def add(self, n): self.total += n; return self
account = Account().add(5); lock = threading.Lock()
pattern = re.compile('a+b'); context = decimal.getcontext(); context.prec = 50
np.save('/tmp/numbers.npy', np.arange(100000)); mapped = np.load('/tmp/numbers.npy', mmap_mode='r')
os.chdir('/tmp'); os.environ['MINE'] = 'yes'
"""


class TestWhatIsCarried:
    def test_variables_files_and_all_that_hangs_on_them(self, session, branch):
        session.run(STATE)
        other = branch(session)
        assert other.value("frame.b.sum(), len(frame)") == session.value("frame.b.sum(), len(frame)")
        assert other.value("next(counter), account.add(1).total, pattern.match('aab').group()") == "(3, 6, 'aab')"
        assert other.value("os.getcwd(), os.environ['MINE'], decimal.getcontext().prec") == "('/tmp', 'yes', 50)"
        assert other.value("_ = log.write('second\\n'); log.flush(); open('/workspace/log.txt').read()") == \
            "'first\\nsecond\\n'"
        assert other.value("int(mapped.sum())") == "4999950000"
        assert other.value("random.random(), generator.random()") == session.value("random.random(), generator.random()")
        assert session.value("open('/workspace/log.txt').read()") == "'first\\n'"

    def test_tasks_and_timers_of_the_loop_go_on(self, session, branch):
        session.run("""
import asyncio, signal
got, loop = [], asyncio.get_running_loop()
async def tick():
    while True:
        got.append(await asyncio.sleep(0.02, "tick"))
async def talk(reader, writer):
    got.append(await reader.read() or "end")
one, other = await asyncio.open_connection(sock=__import__("socket").socketpair()[0])
tasks = [asyncio.create_task(tick()), asyncio.create_task(talk(one, other))]
loop.add_signal_handler(signal.SIGUSR1, got.append, "signal")
await asyncio.sleep(0.05)
""")
        copy = branch(session)
        assert copy.value("before = len(got); await asyncio.sleep(0.2); 'tick' in got[before:]") == "True"
        assert copy.value("import os; os.kill(os.getpid(), signal.SIGUSR1); await asyncio.sleep(0.05); 'signal' in got") == \
            "True"
        assert copy.value("'end' in got, loop is await asyncio.sleep(0, asyncio.get_running_loop())") == "(True, True)"
        assert copy.value("(await asyncio.to_thread(lambda: 5))") == "5"

    def test_cells_work_in_a_branch(self, session, branch):
        session.run("import numpy as np\nx = 1")
        other = branch(session)
        assert other.value("import subprocess; subprocess.run(['echo', 'hi'], capture_output=True).stdout") == "b'hi\\n'"
        assert other.value("import threading; r = []; t = threading.Thread(target=r.append, args=(1,)); t.start(); "
                           "t.join(); r") == "[1]"
        assert other.value("import asyncio; await asyncio.sleep(0.01, 'awaited')") == "'awaited'"
        assert other.value("import multiprocessing as m; p = m.get_context('fork').Pool(2); p.map(abs, [-1, -2])") == \
            "[1, 2]"
        assert other.value("len(bytes(100 << 20)), sum(len(bytes(100)) for _ in range(100000))") == \
            "(104857600, 10000000)"
        failed = other.run("def f(): 1 / 0\nf()")
        assert failed["error"]["name"] == "ZeroDivisionError" and other.value("x") == "1"
        assert other.run("print('out'); import sys; print('err', file=sys.stderr)")["stdout"] == "out\n"
        image = other.run("import matplotlib.pyplot as p; p.plot([1, 2]); p.show()")
        assert "image/png" in image["results"][0]["data"]
        slow = other.begin("while True: pass")
        time.sleep(0.2)
        assert other.call("POST", "/contexts/python/interrupt")[1]["interrupted"]
        assert slow.until("end")["error"]["name"] == "KeyboardInterrupt"
        assert other.value("x") == "1", "it lives on"

    def test_it_is_a_session_like_any_other(self, session, branch):
        session.call("PATCH", body={"metadata": {"who": "a"}, "idle_seconds": 77})
        session.run("x = 1")
        other = branch(session)
        kept = other.get()
        assert kept["parent"] == session.get()["id"] and kept["branched_from"]["context"] == "python"
        assert kept["branched_from"]["checkpoint"] is None and kept["metadata"] == {"who": "a"}
        assert kept["idle_seconds"] == 77 and kept["policy"] == session.get()["policy"]
        assert session.get()["parent"] is None and session.get()["branched_from"] is None
        assert branch(session, metadata={"try": "2"}, idle_seconds=5).get()["metadata"] == {"try": "2"}
        assert other.run("x")["cell"]["number"] == 2, "cells go on counting"
        assert other.run("echo $((1+1))", "bash")["stdout"] == "2\n", "another language"
        made = other.call("POST", "/contexts", {"language": "python"})[1]["id"]
        assert other.run("x", made)["error"]["name"] == "NameError", "another context"
        other.call("POST", "/contexts/python/restart")
        assert other.run("x")["error"]["name"] == "NameError"

    def test_what_is_not_carried_over_is_reported(self, session, branch):
        session.run("x = 1")
        session.run("y=2", "bash")
        named = session.call("POST", "/contexts", {"language": "python"})[1]["id"]
        session.run("x = 2", named)
        other = branch(session, context=named)
        assert set(other.get()["branched_from"]["not_carried"]) == {"context python", "context bash"}
        session.run("import os, threading\nends = os.pipe()\n"
                    "for _ in range(2): threading.Thread(target=threading.Event().wait, daemon=True).start()", named)
        session.call("POST", "/processes", {"command": ["sleep", "60"]})
        told = branch(session, context=named).get()["branched_from"]["not_carried"]
        assert {"1 process", "2 threads", "2 descriptors that are no files"} <= set(told), told
        assert other.value("x", named) == "2"
        assert other.run("x")["error"]["name"] == "NameError", "the other python's is fresh"

    def test_a_session_without_a_cell_and_a_branch_of_a_branch(self, session, branch):
        fresh = branch(session)
        assert fresh.value("import os; os.environ['HOME'], 1 + 1") == "('/home/user', 2)"
        session.run("x = [0]")
        line = [session]
        for n in range(1, 4):
            line.append(branch(line[-1]))
            line[-1].run(f"x.append({n})")
        assert [one.value("x") for one in line] == ["[0]", "[0, 1]", "[0, 1, 2]", "[0, 1, 2, 3]"]

    def test_removed_and_odd_files(self, session, branch):
        session.run("import os, shutil; shutil.rmtree('/home/user'  + '/.config', ignore_errors=True)\n"
                    "for n in os.listdir('/home/user'): os.path.isdir('/home/user/' + n) or os.unlink('/home/user/' + n)\n"
                    "open(b'\\xff\\n', 'w').write('odd'); os.symlink('/etc/passwd', 'link'); os.mkfifo('fifo')\n"
                    "os.makedirs('/dev/shm/deep/er'); open('/dev/shm/deep/er/f', 'w').write('shm')")
        other = branch(session)
        listing = "sorted(os.walk('/home/user')), open(b'\\xff\\n').read(), os.readlink('link'), open('/dev/shm/deep/er/f').read()"
        assert other.value(listing) == session.value(listing)
        assert other.value("os.path.exists('fifo')") == "False"
        assert other.get()["branched_from"]["not_carried"] == ["1 file that cannot be copied"]


    def test_holes_modes_and_deep_folders(self, session, branch):
        """Holes stay holes, or a file that is large only by its size would fill the disk of its copy."""
        session.run("import os\nos.mkdir('open'); os.chmod('open', 0o777)\n"
                    "for n in range(20):\n"
                    "    with open(f'hole{n}', 'wb') as f: f.write(b'begin'); f.truncate(100 << 20); f.seek(50 << 20); f.write(b'mid')\n"
                    "folder = os.open('.', os.O_RDONLY)\n"
                    "for n in range(18):\n"
                    "    os.mkdir('n' * 250, dir_fd=folder); folder = os.open('n' * 250, os.O_RDONLY, dir_fd=folder)\n"
                    "os.close(os.open('f', os.O_CREAT | os.O_WRONLY, dir_fd=folder)); os.close(folder)")
        other = branch(session)
        assert other.value("import os; f = open('hole19', 'rb').read(); len(f), f[:5], f[50 << 20:][:3], f.count(b'\\0'), "
                           "os.stat('hole19').st_blocks < 1000, oct(os.stat('open').st_mode)") == \
            f"({100 << 20}, b'begin', b'mid', {(100 << 20) - 8}, True, '0o40777')"
        assert "1 file that cannot be copied" in other.get()["branched_from"]["not_carried"], other.get()

    def test_two_terabytes_of_holes_are_copied(self, session, branch):
        """The time and the bytes of a copy depend on the data, not on the size: 8192 files, each as long as the disk limit
        lets one file be, with some bytes at odd places of most."""
        session.run("import os, hashlib\nSIZE = 256 << 20; places = [0, 4095, 12345, (100 << 20) + 77, SIZE - 1]\n"
                    "for n in range(8192):\n"
                    "    with open(f'hole{n}', 'wb') as f:\n"
                    "        f.truncate(SIZE)\n"
                    "        for place in places[n % 6:]: f.seek(place); f.write(b'x')\n"
                    "def part(n, f): return os.fstat(f.fileno()).st_blocks, [os.pread(f.fileno(), 3, p and p - 1) for p in places]\n"
                    "def state():\n"
                    "    parts = [part(n, open(f'hole{n}', 'rb')) for n in range(8192)]\n"
                    "    sizes = sum(os.stat(f'hole{n}').st_size for n in range(8192))\n"
                    "    return sizes >> 40, sum(p[0] for p in parts) >> 11, hashlib.sha256(repr(parts).encode()).hexdigest()")
        before = session.value("state()")
        assert before.startswith("(2, 74,"), "TiB of size, MiB of data: " + before
        checkpoint(session, "holes")
        session.run("for n in range(8192): os.unlink(f'hole{n}')")
        checkpoint(session, "none")
        sizes = {one["name"]: one["bytes"] for one in session.call("GET", "/checkpoints")[1]["checkpoints"]}
        assert 74 << 20 < sizes["holes"] - sizes["none"] < 100 << 20, sizes
        assert session.call("POST", "/checkpoints/holes/rollback")[0] == 200
        assert session.value("state()") == before
        other = branch(session)
        assert other.value("state()") == before
        assert branch(session, checkpoint="holes").value("state()") == before


class TestNothingIsShared:
    def test_branch_and_parent_are_independent(self, session, branch):
        session.run("import os, mmap\nx = 1; f = open('f', 'w+'); shared = mmap.mmap(-1, 4096); shared[:2] = b'ab'\n"
                    "r, w = os.pipe(); p = os.getpid()")
        other = branch(session)
        session.run("x = 2; _ = f.write('parent'); f.flush(); shared[:2] = b'pp'")
        other.run("y = 3; _ = f.write('branch!'); f.flush(); shared[2:4] = b'bb'")
        assert other.value("x, open('f').read(), bytes(shared[:4])") == "(1, 'branch!', b'abbb')"
        assert session.value("x, open('f').read(), bytes(shared[:4])") == "(2, 'parent', b'pp\\x00\\x00')"
        assert session.run("y")["error"]["name"] == "NameError"
        assert other.run("os.write(w, b'x')")["error"]["name"] == "BrokenPipeError"
        assert other.value("os.read(r, 1)") == "b''"
        session.run("import signal, subprocess; s = subprocess.Popen(['sleep', '60'])")
        session.run("signal.signal(signal.SIGTERM, signal.SIG_IGN); os.kill(-1, signal.SIGTERM)")
        assert other.value("x + 1") == "2"

    def test_a_branch_outlives_its_parent(self, daemon, branch):
        parent = daemon.session()
        parent.run("x = 41")
        other = branch(parent)
        parent.end()
        assert other.value("x + 1") == "42" and other.get()["parent"] == parent.answer["id"]

    def test_twenty_side_by_side(self, daemon, tmp_path_factory):
        import session_rig
        from conftest import Glovebox
        folder = tmp_path_factory.mktemp("many")
        many = session_rig.Daemon(Glovebox(folder), folder, slots=26, settings=("--checkpoints-mib", "4"))
        try:
            parent = many.session()
            parent.run("import numpy as np; base = np.arange(1000); open('f', 'w').write('base')")

            def try_one(n):
                status, answer = parent.call("POST", "/branch", {})
                assert status == 201, answer
                one = session_rig.Session(many, answer)
                one.run(f"base *= {n}; open('f', 'a').write(' {n}')")
                return one

            with concurrent.futures.ThreadPoolExecutor(20) as pool:
                branches = list(pool.map(try_one, range(20)))
            for n, one in enumerate(branches):
                assert one.value("int(base[10]), open('f').read()") == f"({n * 10}, 'base {n}')"
            assert parent.value("int(base[10]), open('f').read()") == "(10, 'base')"
            status, answer = parent.call("POST", "/checkpoints", {})
            assert status == 429 and "checkpoints_mib" in answer["error"]["message"], answer
            assert not parent.call("GET", "/checkpoints")[1]["checkpoints"]
            assert parent.value("1") == "1"
            for one in [*branches, parent]:
                one.end()
            many.idle()
        finally:
            many.stop()

    def test_the_walls_are_those_of_every_session(self, session, branch):
        session.run("x = 1")
        other = branch(session)
        status = "{l.split(':')[0]: l.split()[1] for l in open('/proc/self/status') if l[:3] in ('Cap', 'NoN', 'Sec')}"
        assert other.value(status) == session.value(status)
        assert other.value("import os; sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')) < 8") == \
            "(['0', '1', '2'], True)"
        assert other.value("[p for p in os.listdir('/proc') if p.isdigit() and "
                           "'glovebox-restore' in open(f'/proc/{p}/comm').read()]") == "[]"
        assert other.run("open('/etc/x', 'w')")["error"]["name"] in ("OSError", "PermissionError")
        assert other.run("import socket; socket.create_connection(('127.0.0.1', 1))")["error"] is not None
        assert other.get()["isolation"] == session.get()["isolation"]
        ulimit = "import resource; [resource.getrlimit(n) for n in range(9)]"
        assert other.value(ulimit) == session.value(ulimit)


class TestRefusals:
    def test_what_cannot_be_branched_is_reported(self, session, branch):
        assert branch(session, 404, context="nobody")["code"] == "not_found"
        session.run("x=1", "bash")
        assert "python" in branch(session, 400, context="bash")["message"]
        assert branch(session, 400, what="x")["code"] == "bad_request"
        assert branch(session, 400, context="python", checkpoint="x")["code"] == "bad_request"
        assert branch(session, 404, checkpoint="none")["code"] == "not_found"
        slow = session.begin("import time; time.sleep(60)")
        assert "a cell runs" in branch(session, 409)["message"]
        session.call("POST", "/contexts/python/interrupt")
        slow.until("end")
        session.call("POST", "/pause")
        assert "resume" in branch(session, 409)["message"]
        session.call("POST", "/resume")
        branch(session)
        session.end()
        assert "ended" in branch(session, 409)["message"]

    def test_memory_that_cannot_be_carried_is_named(self, session, branch):
        session.run("import ctypes\nmap = ctypes.CDLL(None).mmap; map.restype = ctypes.c_void_p\n"
                    "at = map(ctypes.c_void_p(0x2a0000000000), ctypes.c_size_t(4096), 3, 0x32, -1, ctypes.c_long(0))")
        error = branch(session, 409)
        assert error["code"] == "conflict" and "memory lies at the addresses of glovebox-restore" in error["message"]
        status, answer = session.call("POST", "/checkpoints", {})
        assert status == 409 and "memory lies at the addresses of glovebox-restore" in answer["error"]["message"]
        session.run("ctypes.CDLL(None).munmap(ctypes.c_void_p(at), ctypes.c_size_t(4096))")
        branch(session)

    def test_cells_wait_until_it_is_copied(self, session, branch):
        session.run("import numpy as np, os; a = np.ones(4 << 20); open('big', 'wb').write(bytes(30 << 20))")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            made = [pool.submit(session.call, "POST", "/branch", {}) for _ in range(3)]
            cells = [pool.submit(session.run, "os.path.exists('big') and os.unlink('big'); a += 1") for _ in range(3)]
            assert all(cell.result()["status"] == "ok" for cell in cells)
        for status, answer in (one.result() for one in made):
            if status != 201:  # it came behind a cell
                assert status == 409 and "a cell runs" in answer["error"]["message"]
                continue
            place = f"/v1/sessions/{answer['id']}"
            result = session.daemon.call("POST", place + "/contexts/python/run",
                                         {"code": "[float(a.min()), float(a.max()), os.path.exists('big')]"})[1]
            least, most, is_there = json.loads(result["results"][0]["data"]["text/plain"].lower())
            assert least == most and is_there == (least == 1), "one moment, between two cells"
            session.daemon.call("DELETE", place)

    def test_files_and_memory_that_do_not_fit(self, daemon, branch):
        parent = daemon.session(limits={"memory_bytes": 256 << 20})
        parent.run("import os\nblock = bytearray(os.urandom(1 << 20)) * 150")
        made = branch(parent)
        standing = made.call("GET")[1]
        assert standing["state"] == "running" or \
            standing["ended"]["why"] == "failed" and "limits.memory_bytes" in standing["ended"]["message"], standing
        assert parent.value("len(block)") == str(150 << 20), "it lives on"
        parent.end()


KIND_OF_RESULT = enum_of("agent.h", "agent_kind")["AGENT_RESULT"]

HOSTILE = {
    "no image at all": "import _glovebox_kernel, gc, types\n"
                       "gc.unfreeze()\n"
                       "for o in gc.get_objects():\n"
                       "    if isinstance(o, types.FunctionType) and o.__qualname__ == 'imager.<locals>.image':\n"
                       "        for c in o.__closure__:\n"
                       "            if callable(c.cell_contents) and getattr(c.cell_contents, '__name__', '') == 'image':\n"
                       "                c.cell_contents = lambda *a: BODY",
}


def seconds_between(one, other):
    return (datetime.datetime.fromisoformat(other) - datetime.datetime.fromisoformat(one)).total_seconds()


class TestBeforeItStands:
    """A branch is answered for when its moment is fixed; what it needs of its parent comes after that."""

    LARGE = "import os\nblock = bytearray(os.urandom(1 << 20)) * 60; name = 'parent'\nopen('f', 'w').write('f' * 1000)"

    def test_everything_that_is_asked_of_it_waits(self, daemon, session, branch):
        session.run(self.LARGE)
        asks = [
            ("POST", "/contexts/python/run", {"code": "name, len(block)"}, lambda a: a["status"] == "ok"),
            ("GET", "", None, lambda a: a["state"] == "running" and a["contexts"][0]["id"] == "python"),
            ("POST", "/files:list", {"path": "/workspace"}, lambda a: "f" in [e["name"] for e in a["entries"]]),
            ("POST", "/processes", {"command": ["/bin/cat", "f"]}, lambda a: a["id"]),
            ("POST", "/contexts", {"language": "bash"}, lambda a: a["id"]),
            ("GET", "/contexts", None, lambda a: a["contexts"][0]["id"] == "python"),
            ("PATCH", "", {"metadata": {"a": "b"}, "ttl_seconds": 300},
             lambda a: a["metadata"] == {"a": "b"} and seconds_between(a["created_at"], a["expires_at"]) < 310),
            ("PUT", "/files/g", "text", lambda a: a["bytes"] == 6),
        ]
        with concurrent.futures.ThreadPoolExecutor(len(asks)) as threads:
            for _ in range(2):
                other = branch(session)
                assert other.answer["state"] == "running" and other.answer["contexts"][0]["id"] == "python"
                answers = list(threads.map(lambda ask, its=other: its.call(*ask[:3]), asks))
                for (status, answer), (method, path, _, is_good) in zip(answers, asks):
                    assert status in (200, 201) and is_good(answer), (method, path, answer)
                other.end()

    @pytest.mark.parametrize("what", ["session", "context", "restart", "rollback"])
    def test_the_end_of_a_parent_waits_for_the_copy(self, daemon, branch, what):
        parent = daemon.session()
        parent.run(self.LARGE)
        begin = checkpoint(parent)
        ways = {"session": ("DELETE", ""), "context": ("DELETE", "/contexts/python"),
                "restart": ("POST", "/contexts/python/restart"), "rollback": ("POST", f"/checkpoints/{begin}/rollback")}
        for _ in range(1 if what == "session" else 2):
            other = branch(parent)
            assert parent.call(*ways[what])[0] in (200, 204)
            assert other.value("name, len(block)") == f"('parent', {60 << 20})"
            other.end()
            if what in ("context", "restart"):
                parent.run(self.LARGE)
        parent.call("DELETE")

    def test_a_branch_can_be_deleted_before_it_is_ready(self, daemon, session, branch):
        session.run(self.LARGE)
        for _ in range(2):
            other = branch(session)
            with contextlib.closing(socket.socket(socket.AF_UNIX)) as leaver:
                leaver.connect(daemon.path)
                leaver.sendall(f"GET {other.place} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert other.end()["ended"]["why"] == "deleted"
        assert session.value("name") == "'parent'"

    def test_memory_that_was_shared_is_of_its_moment(self, session, branch):
        session.run("import mmap, os\nopen('p', 'wb').write(b'old ' * 1024 * 1024)\nfile = open('p', 'r+b')\n"
                    "private = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE)\n"
                    "shared = mmap.mmap(-1, 24 << 20); shared.write(b'old ' * (6 << 20)); 0")
        for _ in range(2):
            other = branch(session)
            session.run("shared[:] = b'new ' * (6 << 20); _ = os.pwrite(file.fileno(), b'new ' * 1024 * 1024, 0)")
            assert other.value("set(shared[i:i+4] for i in range(0, 24 << 20, 4096)), "
                               "set(private[i:i+4] for i in range(0, 4 << 20, 4096))") == "({b'old '}, {b'old '})"
            other.end()
            session.run("shared[:] = b'old ' * (6 << 20); _ = os.pwrite(file.fileno(), b'old ' * 1024 * 1024, 0)")


def never_stood(branch, parent):
    """The error: in the answer if it occurs before the snapshot is taken, else in the next request to the branch."""
    status, answer = parent.call("POST", "/branch", {})
    if status == 201:
        status, answer = parent.daemon.call("POST", f"/v1/sessions/{answer['id']}/contexts/python/run", {"code": "1"})
    assert status in (409, 422, 504), answer
    return answer["error"]["message"]


class TestHostileParents:
    def attack(self, session, body):
        session.run(HOSTILE["no image at all"].replace("BODY", body))

    @pytest.mark.parametrize("body", [
        "False", "1 / 0", "os.write(a[0], bytes(100000)) and False", "os.write(a[0], b'GLBIMAGE' * 4096) and False",
    ])
    def test_garbage_for_an_image(self, daemon, branch, body):
        parent = daemon.session()
        parent.run("import os; x = 1")
        self.attack(parent, body)
        why = never_stood(branch, parent)
        assert "copied" in why or "ended" in why
        parent.call("DELETE")

    def test_the_pipe_of_an_image_is_not_reachable_by_the_branch(self, daemon, branch):
        """No socket: that would name the process that made it, and carry descriptors into the other sandbox."""
        parent = daemon.session()
        parent.run("import os, socket, stat\nseen = []\n"
                   "def look(fd):\n"
                   "    seen.append(stat.S_ISFIFO(os.fstat(fd).st_mode))\n"
                   "    for option in (socket.SO_PEERCRED, 77):\n"
                   "        try: seen.append(socket.socket(fileno=os.dup(fd)).getsockopt(socket.SOL_SOCKET, option, 12))\n"
                   "        except OSError as error: seen.append(error.errno)\n"
                   "    try: os.open(f'/proc/self/fd/{fd}', os.O_RDONLY); seen.append('read')\n"
                   "    except OSError as error: seen.append(error.errno)\n")
        self.attack(parent, "look(a[0])")
        never_stood(branch, parent)
        assert parent.value("seen") == "[True, 88, 88, 13]"
        parent.call("DELETE")

    def test_an_image_that_never_ends(self, daemon, branch):
        parent = daemon.session()
        parent.run("import os, threading, time\n"
                   "def pour(fd):\n    fd = os.dup(fd)\n    def go():\n        while True: os.write(fd, bytes(1 << 20))\n"
                   "    threading.Thread(target=go, daemon=True).start()")
        self.attack(parent, "pour(a[0])")
        began = time.monotonic()
        never_stood(branch, parent)
        assert time.monotonic() - began < 14
        status, answer = parent.call("POST", "/checkpoints", {})
        assert status in (409, 422, 504), answer
        parent.call("DELETE")
        daemon.idle()

    def test_a_client_that_hangs_up_after_delete(self, daemon):
        """The deletion waits until the memory has been read, even if its client hangs up."""
        parent = daemon.session()
        parent.run("import os, threading")
        self.attack(parent, "threading.Timer(1.5, os.close, [a[0]]).start() or True")
        assert parent.call("POST", "/branch", {})[0] == 201
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(daemon.path)
            connection.sendall(f"DELETE {parent.place} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            time.sleep(0.1)
            status, answer = parent.call("POST", "/branch", {})
            assert status == 409 and "about to end" in answer["error"]["message"], "it is not kept by another one"
        until = time.monotonic() + 30
        while parent.get()["state"] == "running":
            assert time.monotonic() < until
            time.sleep(0.1)
        assert parent.get()["ended"]["why"] == "deleted", parent.get()

    def test_deletion_without_the_right_is_refused(self, tmp_path):
        """A client that hangs up while its deletion waits has the same rights as one that stays."""
        import serving
        from conftest import Glovebox
        glovebox = Glovebox(tmp_path)
        serving.state_of_its_own(glovebox)
        with serving.Serving(glovebox, slots=4, tcp=True) as service:
            keys = {name: service.key("--tenant", "one", "--scope", "run,sessions", "--policy", name)["key"]
                    for name in ("data", "minimal")}
            made = service.call("POST", "/v1/sessions", {"policy": "data"}, key=keys["data"])
            assert made.status == 201, made.json
            place = f"/v1/sessions/{made.json['id']}"
            for code in ("import os, threading", HOSTILE["no image at all"].replace(
                    "BODY", "threading.Timer(2, os.close, [a[0]]).start() or True")):
                done = service.call("POST", f"{place}/contexts/python/run", {"code": code}, key=keys["data"])
                assert done.json["status"] == "ok", done.json
            assert service.call("POST", f"{place}/branch", {}, key=keys["data"]).status == 201
            with socket.create_connection(("127.0.0.1", service.port)) as connection:
                connection.sendall(f"DELETE {place} HTTP/1.1\r\nHost: localhost\r\n"
                                   f"Authorization: Bearer {keys['minimal']}\r\n\r\n".encode())
                time.sleep(0.2)
            assert service.call("DELETE", place, key=keys["minimal"]).status == 403, "when it is read no more"
            time.sleep(1.2)  # deadlines are looked at once a second
            assert service.call("GET", place, key=keys["data"]).json["state"] == "running"

    def test_endless_output_while_a_branch_is_copied(self, daemon, branch):
        """One word of an interpreter is read while it is copied: the others cost nobody anything."""
        parent = daemon.session()
        parent.run("import os, struct\nbody = b'{' + b','.join(b'\"k%d\":[[[1]]]' % i for i in range(3500)) + b'}'\n"
                   "def flood():\n    for _ in range(400):\n"
                   f"        os.write(63, struct.pack('<IHHIIHHI', 8 + len(body), {KIND_OF_RESULT}, 0, 16, 0, 1, 1, 0) + body)\n")
        self.attack(parent, "flood()")

        def used():
            with open(f"/proc/{daemon.daemon_pid()}/stat", encoding="ascii") as file:
                return sum(map(int, file.read().split(") ")[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")

        before = used()
        assert "copied" in never_stood(branch, parent)
        assert used() - before < 1, "seconds of the daemon; reading all of them took 1.5"
        parent.call("DELETE")

    def test_a_writer_that_is_killed(self, daemon, branch):
        """Whatever the parent's other threads do to the child that writes: it is a branch, or it is none."""
        parent = daemon.session()
        parent.run("import os, signal, threading, time\nx = bytes(60 << 20)\ndef murder():\n    while True:\n"
                   "        try: os.kill(-1, signal.SIGKILL)\n        except OSError: pass\n        time.sleep(0.001)\n"
                   "threading.Thread(target=murder, daemon=True).start()")
        for _ in range(3):
            status, answer = parent.call("POST", "/branch", {})
            assert status in (201, 409), answer
            if status == 201:
                place = f"/v1/sessions/{answer['id']}"
                standing = daemon.call("GET", place)[1]
                lives, result = daemon.call("POST", place + "/contexts/python/run", {"code": "len(x)"})
                if standing["state"] == "running":
                    assert result["status"] == "ok", result
                else:
                    assert standing["ended"]["why"] == "failed" and lives == 409, (standing, result)
                daemon.call("DELETE", place)
        status, answer = parent.call("POST", "/checkpoints", {})
        assert status in (201, 409), answer
        if status == 201:
            assert parent.call("POST", f"/checkpoints/{answer['id']}/rollback")[0] == 200
        parent.call("DELETE")
        daemon.idle()


class TestMarks:
    def test_change_and_back_and_again(self, session):
        session.run("x = 1; open('f', 'w').write('one'); g = open('f')")
        first = checkpoint(session, "first")
        session.run("x = 2; open('f', 'w').write('two'); open('new', 'w').close()")
        second = checkpoint(session)
        session.run("del x; import os; os.unlink('f')")
        for _ in range(2):
            status, answer = session.call("POST", f"/checkpoints/{first}/rollback")
            assert status == 200 and answer["id"] == session.answer["id"] and answer["state"] == "running", answer
            assert session.value("import os; x, open('f').read(), os.path.exists('new'), g.read()") == \
                "(1, 'one', False, 'one')"
        assert session.call("POST", f"/checkpoints/{second}/rollback")[0] == 200
        assert session.value("import os; x, open('f').read(), os.path.exists('new')") == "(2, 'two', True)"
        checkpoints = session.call("GET", "/checkpoints")[1]["checkpoints"]
        assert [(row["id"], row["name"]) for row in checkpoints] == [(second, None), (first, "first")]
        assert all(row["bytes"] > 1 << 20 and row["context"] == "python" for row in checkpoints)
        assert session.call("POST", "/checkpoints/first/rollback")[0] == 200, "by its name"
        assert session.call("DELETE", f"/checkpoints/{first}")[0] == 200
        assert session.call("POST", f"/checkpoints/{first}/rollback")[0] == 404

    def test_a_checkpoint_outlives_a_crash_and_a_rollback_ends_programs(self, session):
        session.run("x = 'kept'")
        session.run("v=1", "bash")
        name = checkpoint(session, "safe")
        process = session.call("POST", "/processes", {"command": ["sleep", "60"]})[1]["id"]
        session.run("import os; os.kill(os.getpid(), 11)")
        assert session.run("x")["error"]["name"] == "NameError"
        assert session.call("POST", f"/checkpoints/{name}/rollback")[0] == 200
        assert session.value("x") == "'kept'"
        assert session.run("echo $v", "bash")["stdout"] == "\n", "its names are gone"
        assert session.call("GET", f"/processes/{process}")[1]["state"] == "ended"

    def test_a_running_cell_is_reported(self, session):
        session.run("x = 1")
        name = checkpoint(session)
        running = session.begin("import time\nwhile True: time.sleep(0.1)")
        time.sleep(0.3)
        assert session.call("POST", f"/checkpoints/{name}/rollback")[0] == 200
        end = running.until("end")
        assert "rolled back" in end["error"]["value"], end["error"]
        assert session.value("x") == "1"

    def test_no_branch_begins_during_a_rollback(self, daemon):
        """A branch would be answered for, and lose the interpreter that it is read from."""
        one = daemon.session(limits={"memory_bytes": 621 << 20})  # nothing like it is parked
        one.run("x = 1")
        name = checkpoint(one)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            back = pool.submit(one.call, "POST", f"/checkpoints/{name}/rollback")
            answers = []
            while not back.done():
                answers.append(one.call("POST", "/branch", {}))
        assert back.result()[0] in (200, 409), back.result()
        for status, answer in answers:
            assert status in (201, 409), answer
            if status == 201:
                assert daemon.call("POST", f"/v1/sessions/{answer['id']}/contexts/python/run", {"code": "x"})[0] == 200
                daemon.call("DELETE", f"/v1/sessions/{answer['id']}")
        one.end()

    @pytest.mark.parametrize("gone", ["", "checkpoint"])
    @pytest.mark.parametrize("way", ["branch", "rollback"])
    def test_a_checkpoint_that_is_deleted_while_it_is_restored(self, daemon, way, gone):
        """An operation that holds a checkpoint restores it, although it has been deleted."""
        lives = daemon.daemon_pid()
        parent = daemon.session(limits={"memory_bytes": (600 + len(way + gone)) << 20})  # nothing like it is parked
        parent.run("x = 41")
        name = checkpoint(parent)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            path, body = ("/branch", {"checkpoint": name}) if way == "branch" else (f"/checkpoints/{name}/rollback", None)
            restored = pool.submit(parent.call, "POST", path, body)
            time.sleep(0.003)
            parent.call("DELETE", f"/checkpoints/{name}" if gone else "")
            status, answer = restored.result()
        assert status in (200, 201, 404, 409), answer
        if status == 201:
            assert daemon.call("POST", f"/v1/sessions/{answer['id']}/contexts/python/run",
                               {"code": "x + 1"})[1]["results"][0]["data"]["text/plain"] == "42"
            daemon.call("DELETE", f"/v1/sessions/{answer['id']}")
        assert daemon.daemon_pid() == lives
        parent.call("DELETE")
        daemon.idle()

    @pytest.mark.parametrize("path", ["/checkpoints", "/branch"])
    def test_a_pause_stops_none_that_is_being_made(self, session, path):
        """Else its writer would be frozen with all else, and its callers would wait for a minute."""
        session.run("x = bytearray(b'x') * (150 << 20)")
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            made = pool.submit(session.call, "POST", path, {})
            time.sleep(0.02)
            paused = session.call("POST", "/pause")[0]
            status, answer = made.result()
        assert paused in (200, 409) and status in (201, 409, 422), (paused, answer)
        assert time.monotonic() - began < 15, "60 s if it waits for its deadline"
        session.call("POST", "/resume")
        if path == "/branch" and status == 201:
            session.daemon.call("DELETE", f"/v1/sessions/{answer['id']}")
        assert session.value("len(x)") == str(150 << 20)

    def test_waiting_for_a_copy_keeps_the_session_from_being_idle(self, daemon):
        slow = HOSTILE["no image at all"].replace("lambda *a: BODY", "lambda *a, image=c.cell_contents: time.sleep(2) or image(*a)")

        def copy(path):
            one = daemon.session()
            one.run("import time; x = 1\n" + slow)
            one.call("PATCH", body={"idle_seconds": 1})
            status, answer = one.call("POST", path, {})
            assert status == 201, answer
            if path == "/branch":
                daemon.call("DELETE", f"/v1/sessions/{answer['id']}")
            one.call("DELETE")

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(copy, ["/checkpoints", "/branch"]))

    def test_usage_counts_on(self, session, branch):
        name = checkpoint(session)
        session.run("import time\nbig = bytearray(150 << 20)\nwhile time.process_time() < 0.3: pass")
        before = session.get()["usage"]
        assert before["cpu_ms"] >= 200 and before["memory_peak_bytes"] > 150 << 20
        for _ in range(2):
            assert session.call("POST", f"/checkpoints/{name}/rollback")[0] == 200
            after = session.get()["usage"]
            assert all(after[key] >= before[key] for key in before), (before, after)
        after = session.end()["usage"]
        assert after["cpu_ms"] >= before["cpu_ms"] and after["memory_peak_bytes"] > 150 << 20

    def test_a_branch_from_a_mark(self, session, branch):
        session.run("x = 1")
        name = checkpoint(session, "start")
        session.run("x = 2")
        others = [branch(session, checkpoint="start") for _ in range(3)]
        assert [one.value("x") for one in others] == ["1"] * 3 and session.value("x") == "2"
        assert others[0].get()["branched_from"]["checkpoint"] == name

    def test_a_mark_that_is_removed_before_its_branch_has_a_sandbox(self, tmp_path):
        import session_rig
        from conftest import Glovebox
        full = session_rig.Daemon(Glovebox(tmp_path), tmp_path, slots=2)
        try:
            parent, other = full.session(), full.session()
            parent.run("x = 1")
            name = checkpoint(parent)
            with concurrent.futures.ThreadPoolExecutor(1) as beside:
                waiting = beside.submit(parent.call, "POST", "/branch", {"checkpoint": name})
                while len(full.call("GET", "/v1/sessions")[1]["sessions"]) < 3:
                    time.sleep(0.01)
                assert parent.call("DELETE", f"/checkpoints/{name}")[0] == 200
                other.end()
                status, answer = waiting.result()
            assert status == 201 and answer["branched_from"]["checkpoint"] == name, answer
            other = session_rig.Session(full, answer)
            assert other.value("x") == "1"
            again = checkpoint(parent)
            with concurrent.futures.ThreadPoolExecutor(1) as beside:
                waiting = beside.submit(parent.call, "POST", f"/checkpoints/{again}/rollback")
                time.sleep(0.2)
                assert not waiting.done(), "the way back waits for a slot"
                other.end()
                assert waiting.result()[0] == 200, waiting.result()
            for _ in range(6):  # the slot of the one before is still being cleared
                status, answer = parent.call("POST", f"/checkpoints/{again}/rollback")
                assert status == 200, answer
        finally:
            full.stop()

    def test_marks_of_a_session_that_has_ended(self, daemon):
        """They went with it, and that is said; not that it never had them."""
        session = daemon.session()
        session.run("x = 1")
        made = checkpoint(session)
        session.end()
        for method, path in (("POST", f"/checkpoints/{made}/rollback"), ("DELETE", f"/checkpoints/{made}")):
            status, answer = session.call(method, path)
            assert status == 409 and "has ended" in answer["error"]["message"], (method, answer)

    def test_limits_and_names(self, session):
        session.run("x = 1")
        names = [checkpoint(session, f"m{n}") for n in range(16)]
        status, answer = session.call("POST", "/checkpoints", {})
        assert status == 429 and "16 checkpoints" in answer["error"]["message"]
        session.call("DELETE", f"/checkpoints/{names[0]}")
        assert session.call("POST", "/checkpoints", {"name": "m1"})[0] == 409
        for name in ("a/b", "ckp_x", "x" * 64, "\u00e4"):
            assert session.call("POST", "/checkpoints", {"name": name})[0] == 400, name
        assert session.call("POST", "/checkpoints", {"what": 1})[0] == 400
        for wish in ({"checkpoint": "m1\0x"}, {"context": "python\0x"}, {"checkpoint": None}, {"checkpoint": ""}):
            status, answer = session.call("POST", "/branch", wish)
            assert status == 400 and f"'{[*wish][0]}' must be an id" in answer["error"]["message"], answer

    def test_all_of_them_have_a_bound_also_while_they_are_made(self, tmp_path):
        import session_rig
        from conftest import Glovebox
        small = session_rig.Daemon(Glovebox(tmp_path), tmp_path, slots=4, settings=("--checkpoints-mib", "100"))
        try:
            folder = f"/proc/{small.daemon_pid()}/fd"
            one = small.session(policy="minimal")
            one.run("import os; big = bytearray(os.urandom(60 << 20))")
            first = checkpoint(one)
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                made = [pool.submit(one.call, "POST", "/checkpoints", {}) for _ in range(4)]
                most = 0
                while not all(one_made.done() for one_made in made):
                    with contextlib.suppress(FileNotFoundError):  # closed between two looks
                        seen, again = ({file.st_ino: file.st_blocks * 512 for file in
                                        [os.stat(f"{folder}/{n}") for n in os.listdir(folder)
                                         if "deleted" in os.readlink(f"{folder}/{n}")]} for _ in range(2))
                        most = max(most, sum(size for file, size in seen.items() if file in again))  # there at one moment
            for status, answer in (one_made.result() for one_made in made):
                assert status == 429 and "of all sessions may have 100 MiB (setting checkpoints_mib)" in answer["error"]["message"], answer
            assert 60 << 20 < most <= 101 << 20, most
            one.call("DELETE", f"/checkpoints/{first}")
            checkpoint(one)
            one.end()
        finally:
            small.stop()

    def test_one_key_leaves_half_to_the_others(self, tmp_path):
        import serving
        from conftest import Glovebox
        glovebox = Glovebox(tmp_path)
        serving.state_of_its_own(glovebox)
        with serving.Serving(glovebox, "--checkpoints-mib", "100", slots=4) as service:
            def session_of(name):
                key = service.key("--tenant", name, "--scope", "run,sessions")
                made = service.call("POST", "/v1/sessions", {"policy": "minimal"}, key=key)
                assert made.status == 201, made.json
                place = f"/v1/sessions/{made.json['id']}"
                done = service.call("POST", f"{place}/contexts/python/run",
                                    {"code": "import os; big = bytearray(os.urandom(20 << 20))"}, key=key)
                assert done.json["status"] == "ok", done.json
                return lambda: service.call("POST", f"{place}/checkpoints", {}, key=key)

            greedy, other = session_of("greedy"), session_of("other")
            answers = [greedy() for _ in range(3)]
            assert [answer.status for answer in answers] == [201, 429, 429], [answer.json for answer in answers]
            assert "of one key may have 50 MiB" in answers[1].json["error"]["message"]
            assert other().status == 201

    def test_branches_leave_nothing_behind(self, daemon):
        one = daemon.session()
        one.run("x = bytes(20 << 20)")
        checkpoint(one), checkpoint(one)
        fds = f"/proc/{daemon.daemon_pid()}/fd"

        def wait_for(count):
            """The thread that wrote or read it closes it, a moment after the answer."""
            until = time.monotonic() + 10
            while (held := self.scratch_files(fds)) != count:
                assert time.monotonic() < until, held
                time.sleep(0.02)

        wait_for(4)
        one.call("POST", "/checkpoints/" + checkpoint(one) + "/rollback")
        one.end()
        daemon.idle()
        wait_for(0)

    @staticmethod
    def scratch_files(fds):
        count = 0
        for number in os.listdir(fds):
            with contextlib.suppress(FileNotFoundError):  # closed since it was listed
                place = os.readlink(f"{fds}/{number}")
                count += "blobs/" in place and "deleted" in place
        return count


def test_nothing_is_left(daemon):
    """Branches that were made, that failed and whose maker hung up: no sandbox, no pipe, no process."""
    daemon.idle()
    folder = f"/proc/{daemon.daemon_pid()}/fd"

    def pipes():
        held = []
        for number in os.listdir(folder):
            try:
                held.append(os.readlink(f"{folder}/{number}"))
            except FileNotFoundError:
                pass
        return {place for place in held if place.startswith("pipe:")}

    before = pipes()
    parent = daemon.session()
    parent.run("x = bytes(50 << 20)")
    for n in range(6):
        if n % 2 == 0:
            status, answer = parent.call("POST", "/branch", {})
            assert status == 201, answer
            daemon.call("DELETE", f"/v1/sessions/{answer['id']}")
            continue
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(daemon.path)
        connection.sendall(f"POST {parent.place}/{'checkpoints' if n == 5 else 'branch'} HTTP/1.1\r\nHost: x\r\n"
                           "Content-Length: 2\r\n\r\n{}".encode())
        time.sleep(0.005 * n)
        connection.close()
    assert parent.value("len(x)") == str(50 << 20)
    for row in daemon.call("GET", "/v1/sessions")[1]["sessions"]:  # that stood before their maker had gone
        daemon.call("DELETE", f"/v1/sessions/{row['id']}")
    daemon.idle()
    assert pipes() <= before

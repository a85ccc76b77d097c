"""The zygote and its interpreters alone: no daemon, a stand-in for init (zygote_rig)."""

import json
import os
import pathlib
import time

import pytest

import zygote_rig
from conftest import BUILD, STATE, zygote_of
from zygote_rig import Rig

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="maps a block of ids, as root")


@pytest.fixture
def interpreter(light):
    one = light.fork()
    assert one.os_error == 0, one.failure
    yield one
    one.close()


def run(rig, code, **options):
    one = rig.fork()
    assert one.os_error == 0, one.failure
    outcome = one.execute(code, **options)
    outcome["end"] = one.wait() if outcome["executed"] is None or outcome["executed"]["ends"] else None
    one.close()
    return outcome


# --- scripts: as `python3 FILE ARGUMENT…` ------------------------------------------------------

SCRIPTS = [
    # name, code, stdout, stderr, exit code
    ("knows on which processor it runs", """
import ctypes, os
for processor in sorted(os.sched_getaffinity(0)) * 2:
    os.sched_setaffinity(0, {processor})
    if ctypes.CDLL(None).sched_getcpu() != processor:
        print('elsewhere')
""", "", "", 0),
    ("prints", "print('hello')", "hello\n", "", 0),
    ("exits with a number", "import sys; sys.exit(7)", "", "", 7),
    ("exits with a large number", "import sys; sys.exit(256 + 3)", "", "", 3),
    ("exits with a text", "import sys; sys.exit('no')", "", "no\n", 1),
    ("exits with nothing", "import sys; sys.exit()", "", "", 0),
    ("raises", "def f():\n    return 1 / 0\nf()\n", "",
     'Traceback (most recent call last):\n  File "/run/main.py", line 3, in <module>\n    f()\n'
     '  File "/run/main.py", line 2, in f\n    return 1 / 0\n           ~~^~~\n'
     "ZeroDivisionError: division by zero\n", 1),
    ("has a wrong syntax", "x = (\n", "",
     "  File \"/run/main.py\", line 1\n    x = (\n        ^\nSyntaxError: '(' was never closed\n", 1),
    ("is the main module", "print(__name__, __file__, __spec__, __annotations__)",
     "__main__ /run/main.py None {}\n", "", 0),
    ("runs atexit functions last", "import atexit; atexit.register(print, 'bye'); print('hi')",
     "hi\nbye\n", "", 0),
    ("waits for threads",
     "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.05), print('late'))).start()\n",
     "late\n", "", 0),
    ("ends a pool of threads", "import concurrent.futures as c\npool = c.ThreadPoolExecutor(2)\n"
     "pool.submit(print, 'worked')\n", "worked\n", "", 0),
    ("calls what threading was given for its end",
     "import threading\nthreading._register_atexit(print, 'threads end')\n", "threads end\n", "", 0),
    ("shuts logging down after its exit functions",
     "import atexit, logging, logging.handlers\nlogging.basicConfig(format='%(message)s')\n"
     "memory = logging.handlers.MemoryHandler(9, target=logging.root.handlers[0])\n"
     "log = logging.getLogger('kept')\nlog.propagate = False\nlog.addHandler(memory)\n"
     "atexit.register(log.warning, 'at exit')\nlog.warning('first')\n", "", "first\nat exit\n", 0),
    ("shuts down handlers of a dictConfig",
     "import logging.config\nlogging.config.dictConfig({'version': 1, 'root': {'handlers': ['h']},\n"
     "  'handlers': {'h': {'class': 'logging.handlers.MemoryHandler', 'capacity': 9, 'target': 's'},\n"
     "               's': {'class': 'logging.StreamHandler'}}})\nlogging.warning('kept back')\n", "", "kept back\n", 0),
    ("logs since its own start", "import logging\nrecord = logging.makeLogRecord({})\n"
     "print(0 <= logging.LogRecord('', 0, '', 0, '', (), None).relativeCreated < 60000)\n", "True\n", "", 0),
    ("frees its objects", "class A:\n    def __del__(self): print('gone')\na = A()\n", "gone\n", "", 0),
    ("frees cycles", "class A:\n    def __del__(self): print('gone')\na = A(); a.a = a\n", "gone\n",
     "", 0),
    ("closes files that it left open",
     "_file = open('/tmp/x', 'w'); _file.write('kept')\n"
     "class Look:\n    def __del__(self, open=open): print(open('/tmp/x').read())\nlook = Look()\n",
     "kept\n", "", 0),
    ("flushes without newline", "print('x', end='')", "x", "", 0),
    ("asks its own excepthook", "import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__)\n1 / 0\n",
     "mine ZeroDivisionError\n", "", 1),
    ("survives a broken excepthook", "import sys\ndef hook(*a): raise KeyError(1)\nsys.excepthook = hook\n1/0\n",
     "", "Error in sys.excepthook:", 1),
    ("leaves with os._exit", "import os\nprint('a', flush=True)\nos._exit(9)", "a\n", "", 9),
    ("forks", "import os\np = os.fork()\nif p == 0:\n    raise SystemExit(5)\n"
     "print(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]))\n", "5\n", "", 0),
    ("starts programs", "import subprocess\nprint(subprocess.run(['echo', 'x'], capture_output=True).stdout)",
     "b'x\\n'\n", "", 0),
    ("uses multiprocessing", "import multiprocessing as m\ndef f(x): return x * 2\n"
     "if __name__ == '__main__':\n    with m.get_context('fork').Pool(2) as p: print(p.map(f, [1, 2]))\n",
     "[2, 4]\n", "", 0),
    ("spawns", "import multiprocessing as m\ndef f(q): q.put('from ' + __name__)\n"
     "if __name__ == '__main__':\n    c = m.get_context('spawn'); q = c.Queue(); p = c.Process(target=f, args=(q,))\n"
     "    p.start(); print(q.get()); p.join()\n", "from __mp_main__\n", "", 0),
    ("awaits", "import asyncio\nasync def f():\n    await asyncio.sleep(0); print('ok')\nasyncio.run(f())\n",
     "ok\n", "", 0),
    ("keeps other modules apart", "import sys\nprint([m for m in sys.modules if m in ('zygote', 'cell')])",
     "[]\n", "", 0),
    ("has a recursion limit", "def f(): f()\ntry: f()\nexcept RecursionError: print('deep')\n", "deep\n", "", 0),
    ("knows its folder", "import os, sys; print(os.getcwd(), sys.path[:2], sys.argv)",
     "/workspace ['/run', '/workspace'] ['/run/main.py']\n", "", 0),
    ("reads no input", "import sys; print(repr(sys.stdin.read()))", "''\n", "", 0),
    ("prints anything", "import sys; sys.stdout.buffer.write(b'\\xff\\x00')", b"\xff\x00", "", 0),
    ("reads its own source", "import inspect\ndef f(): return 1\nprint(inspect.getsource(f))",
     "def f(): return 1\n\n", "", 0),
    ("has a declared encoding", "# -*- coding: latin-1 -*-\nprint(len('ä'))", "2\n", "", 0),
]


@pytest.mark.parametrize("name,code,stdout,stderr,exit_code", SCRIPTS, ids=[row[0] for row in SCRIPTS])
def test_a_script(light, name, code, stdout, stderr, exit_code):
    outcome = run(light, code)
    expected = stdout if isinstance(stdout, bytes) else stdout.encode()
    assert outcome["stdout"] == expected
    if stderr.endswith("hook:"):
        assert outcome["stderr"].decode().startswith(stderr)
    else:
        assert outcome["stderr"].decode() == stderr
    assert outcome["end"] == (exit_code, 0)
    if outcome["executed"] is not None:
        assert outcome["executed"] == {"code": exit_code, "signal": 0, "ends": 1, "count": 1}


def test_arguments_environment_and_input_arrive(light):
    code = "import os, sys; print(sys.argv[1:], sorted(os.environ.items()), sys.stdin.read())"
    outcome = run(light, code, arguments=["a b", "ü"], variables={"A": "1", "B": "x=y"}, stdin=b"in\nput")
    assert outcome["stdout"].decode() == "['a b', 'ü'] [('A', '1'), ('B', 'x=y')] in\nput\n"


def test_children_see_the_same_environment(light):
    outcome = run(light, "import subprocess; print(subprocess.run(['env'], capture_output=True).stdout)",
                  variables={"PATH": "/usr/bin:/bin", "A": "1"})
    assert sorted(eval(outcome["stdout"]).decode().split()) == ["A=1", "PATH=/usr/bin:/bin"]


def test_an_interrupt_ends_a_script_as_it_does_python(light):
    one = light.fork()
    outcome = one.execute("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    assert outcome["stderr"].decode().endswith("KeyboardInterrupt\n")
    assert outcome["executed"]["signal"] == 2
    assert one.wait() == (None, 2)
    one.close()


def test_a_crash_is_seen_by_init(light):
    one = light.fork()
    outcome = one.execute("import os\nprint('last words', end='')\nos.kill(os.getpid(), 11)")
    assert outcome["executed"] is None and outcome["stdout"] == b"last words"
    assert one.wait() == (None, 11)
    one.close()


def test_the_end_is_reported_before_the_process_is_gone(data):
    one = data.fork()
    time.sleep(0.1)
    outcome = one.execute("print(1)")
    assert outcome["executed"]["code"] == 0
    one.wait()
    one.close()


def test_a_program_may_close_every_descriptor(light):
    outcome = run(light, "import os\nos.closerange(3, 1024)\nfs = [open('/tmp/%d' % i, 'w') for i in range(80)]\n"
                         "print(sum(os.path.getsize('/tmp/%d' % i) for i in range(80)))")
    assert outcome["stdout"] == b"0\n"
    assert outcome["executed"] is None and outcome["end"] == (0, 0)


# --- cells --------------------------------------------------------------------------------------

CELLS = [
    # code, MIME bundles shown (the last is the value), stdout
    ("1 + 1", [{"text/plain": "2", "application/json": 2}], ""),
    ("x = 5", [], ""),
    ("None", [], ""),
    ("1 + 1;", [], ""),
    ("'a'", [{"text/plain": "'a'", "application/json": "a"}], ""),
    ("(1, -2.5, True)", [{"text/plain": "(1, -2.5, True)", "application/json": [1, -2.5, True]}], ""),
    ("2 ** 64 - 1", [{"text/plain": str(2 ** 64 - 1), "application/json": 2 ** 64 - 1}], ""),
    ("-2 ** 63", [{"text/plain": str(-2 ** 63), "application/json": -2 ** 63}], ""),
    ("[2 ** 64]", [{"text/plain": f"[{2 ** 64}]"}], ""),
    ("0.1", [{"text/plain": "0.1", "application/json": 0.1}], ""),
    ("False", [{"text/plain": "False", "application/json": False}], ""),
    ("float('inf')", [{"text/plain": "inf"}], ""),
    ("{1, 2}", [{"text/plain": "{1, 2}"}], ""),
    ("['\\udc80']", [{"text/plain": "['\\udc80']"}], ""),
    ("[1, 'b', None]", [{"text/plain": "[1, 'b', None]", "application/json": [1, "b", None]}], ""),
    ("{'a': float('nan')}", [{"text/plain": "{'a': nan}"}], ""),
    ("object", [{"text/plain": "object"}], ""),
    ("print('p'); 3", [{"text/plain": "3", "application/json": 3}], "p\n"),
    ("import asyncio\nawait asyncio.sleep(0, 'slept')", [{"text/plain": "'slept'", "application/json": "slept"}],
     ""),
    ("for i in range(2): display(i)", [{"text/plain": "0", "application/json": 0},
                                       {"text/plain": "1", "application/json": 1}], ""),
    ("class H:\n  def __repr__(self): return 'h'\n  def _repr_html_(self): return '<b>'\nH()",
     [{"text/plain": "h", "text/html": "<b>"}], ""),
    ("class P:\n  def __repr__(self): return 'p'\n  def _repr_png_(self): return b'ab'\nP()",
     [{"text/plain": "p", "image/png": "YWI="}], ""),
    ("class M:\n  def __repr__(self): return 'm'\n  def _repr_mimebundle_(self, **k): return {'a/b': 'c'}\nM()",
     [{"text/plain": "m", "a/b": "c"}], ""),
    ("'\\ud800'", [{"text/plain": "'\\ud800'"}], ""),
    ("['a\\x00']", [{"text/plain": "['a\\x00']", "application/json": ["a\0"]}], ""),
    ("[{'a\\x00': 1}]", [{"text/plain": "[{'a\\x00': 1}]"}], ""),
    ("class N:\n  def __repr__(self): return 'n'\n  def _repr_mimebundle_(self, **k): return {'a\\x00': 'c'}, {'b\\x00': 1}\nN()",
     [{"text/plain": "n"}], ""),
]


@pytest.mark.parametrize("code,shown,stdout", CELLS, ids=[row[0][:30] for row in CELLS])
def test_a_cell(interpreter, code, shown, stdout):
    outcome = interpreter.execute(code, mode="CELL")
    assert [result["data"] for result in outcome["results"]] == shown
    assert outcome["stdout"].decode() == stdout and outcome["stderr"] == b""
    assert outcome["error"] is None
    assert outcome["executed"] == {"code": 0, "signal": 0, "ends": 0, "count": 1}


def test_names_stay_for_the_next_cell(interpreter):
    interpreter.execute("x = 40\nimport math", mode="CELL")
    interpreter.execute("from __future__ import annotations", mode="CELL")
    assert interpreter.execute("1 / 0", mode="CELL")["error"]["name"] == "ZeroDivisionError"
    outcome = interpreter.execute("def f(a: nowhere): return a\nx + math.floor(2.5)", mode="CELL")
    assert outcome["results"][0]["data"]["text/plain"] == "42"
    assert interpreter.execute("_ + 1", mode="CELL")["results"][0]["data"]["text/plain"] == "43"
    assert outcome["executed"]["count"] == 4


def test_an_error_of_a_cell_is_data(interpreter):
    error = interpreter.execute("def f(a):\n    return a.b\n\nf(1)", mode="CELL")["error"]
    assert error == {
        "name": "AttributeError", "value": "'int' object has no attribute 'b'",
        "traceback": 'Traceback (most recent call last):\n  File "<cell 1>", line 4, in <module>\n    f(1)\n'
                     '  File "<cell 1>", line 2, in f\n    return a.b\n           ^^^\n'
                     "AttributeError: 'int' object has no attribute 'b'\n",
        "frames": [{"file": "<cell 1>", "line": 4, "function": "<module>", "code": "f(1)"},
                   {"file": "<cell 1>", "line": 2, "function": "f", "code": "return a.b"}]}


def test_a_wrong_syntax_is_data(interpreter):
    error = interpreter.execute("x = = 1", mode="CELL")["error"]
    assert error["name"] == "SyntaxError" and error["frames"][0]["line"] == 1
    assert "_glovebox" not in error["traceback"]


def test_an_interrupt_ends_a_cell_and_not_the_context(interpreter):
    code = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)"
    assert interpreter.execute(code, mode="CELL")["error"]["name"] == "KeyboardInterrupt"
    assert interpreter.execute("'alive'", mode="CELL")["executed"]["code"] == 0


def test_an_interrupt_between_cells_is_nothing(interpreter):
    interpreter.execute("import os; pid = os.getpid()", mode="CELL")
    os.kill(interpreter.host_pid(), 2)
    time.sleep(0.02)
    assert interpreter.execute("1", mode="CELL")["executed"]["code"] == 0


def test_the_last_cell_ends_the_interpreter(interpreter):
    outcome = interpreter.execute("f = open('/workspace/x', 'w'); f.write('kept'); 5", mode="CELL", flags=2)
    assert outcome["executed"]["ends"] == 1 and outcome["results"][0]["data"]["text/plain"] == "5"
    assert interpreter.wait() == (0, 0)


def test_a_large_result_comes_in_pieces(interpreter):
    outcome = interpreter.execute("'x' * 300000", mode="CELL")
    assert outcome["results"][0]["data"]["text/plain"] == repr("x" * 300000)


def test_frames_values_and_figures(data):
    one = data.fork()
    outcome = one.execute("import pandas as pd; pd.DataFrame({'a': [1, 2]})", mode="CELL")
    bundle = outcome["results"][0]["data"]
    assert bundle["text/plain"] == "   a\n0  1\n1  2" and bundle["text/html"].startswith("<div>")
    outcome = one.execute("import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.title('t');", mode="CELL")
    assert [result["main"] for result in outcome["results"]] == [False]
    assert outcome["results"][0]["data"]["image/png"].startswith("iVBORw0KGgo")
    outcome = one.execute("plt.plot([1]); plt.show(); print('after'); fig = plt.figure(); fig", mode="CELL")
    assert [result["main"] for result in outcome["results"]] == [False, True]
    assert all("image/png" in result["data"] for result in outcome["results"])
    one.close()


def test_pyplot_that_is_imported_late_is_met(data):
    code = "import sys\nfor n in [n for n in sys.modules if n.startswith('matplotlib.pyplot')]: del sys.modules[n]\n" \
           "import matplotlib.pyplot as p\np.plot([1]); p.show()"
    outcome = run(data, code, mode="CELL", flags=2)
    assert outcome["error"] is None and outcome["results"][0]["data"]["image/png"]


# --- walls and freshness ------------------------------------------------------------------------

LOOK = """
import json, os, resource
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines())
print(json.dumps({
    "status": {k: status[k].strip() for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs",
                                             "Seccomp", "Uid", "Gid", "Groups", "Threads")},
    "descriptors": sorted(int(fd) for fd in os.listdir("/proc/self/fd")),
    "namespaces": {n: os.readlink("/proc/self/ns/" + n) for n in os.listdir("/proc/self/ns")},
    "parent": os.getppid(), "session": os.getsid(0) == os.getpid(), "pids": [p for p in os.listdir("/proc") if p.isdigit()],
    "limits": {n: resource.getrlimit(getattr(resource, n)) for n in ("RLIMIT_CORE", "RLIMIT_NOFILE", "RLIMIT_FSIZE")},
    "oom": open("/proc/self/oom_score_adj").read().strip(), "environment": dict(os.environ),
    "files": [p for p in ("/etc/shadow", "/srv/host", "/var/lib/glovebox") if os.path.exists(p)],
    "umask": os.umask(0),
}))
"""


def test_every_wall_stands_before_code_is_read(light):
    outcome = run(light, LOOK, variables={"A": "1"})
    seen = json.loads(outcome["stdout"])
    none = "0" * 16
    assert seen["status"] == {"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
                              "NoNewPrivs": "1", "Seccomp": "2", "Uid": "1000\t1000\t1000\t1000",
                              "Gid": "1000\t1000\t1000\t1000", "Groups": "", "Threads": "1"}
    # 63 is the way back to init, one more is the listing itself.
    assert [fd for fd in seen["descriptors"] if fd not in (0, 1, 2, 63)] == [3]
    assert seen["parent"] == 1 and seen["session"] and sorted(seen["pids"]) == ["1", "3"]
    assert seen["limits"] == {"RLIMIT_CORE": [1, 1], "RLIMIT_NOFILE": [1024, 1024],
                              "RLIMIT_FSIZE": [1 << 26, 1 << 26]}
    assert seen["oom"] == "900" and seen["environment"] == {"A": "1", "LC_CTYPE": "C.UTF-8"} or \
        seen["environment"] == {"A": "1"}
    assert seen["umask"] == 0o22


def test_it_is_in_the_namespaces_of_its_init(light):
    one = light.fork()
    pid = one.host_pid()
    init = int(pathlib.Path(f"/proc/{pid}/status").read_text().split("PPid:\t")[1].split()[0])
    for name in ("user", "mnt", "pid", "ipc", "uts", "net"):
        assert os.readlink(f"/proc/{pid}/ns/{name}") == os.readlink(f"/proc/{init}/ns/{name}")
        assert os.readlink(f"/proc/{pid}/ns/{name}") != os.readlink(f"/proc/{light.zygote_pid_outside()}/ns/{name}")
    assert one.listener is not None
    one.close()


def test_it_joins_the_control_groups_first(light):
    group = pathlib.Path("/sys/fs/cgroup/pids/zygote-test")
    if not group.parent.is_dir():
        pytest.skip("no pids controller of cgroup v1 here")
    group.mkdir(exist_ok=True)
    procs = os.open(group / "cgroup.procs", os.O_WRONLY)
    one = light.fork(procs=[procs])
    os.close(procs)
    assert (group / "cgroup.procs").read_text().split() == [str(one.host_pid())]
    one.close()
    for _ in range(100):
        try:
            group.rmdir()
            break
        except OSError:
            time.sleep(0.02)
    assert not group.exists()


RANDOM = """
import os, random, secrets, ssl, tempfile, uuid, multiprocessing
print(random.random(), secrets.token_hex(8), ssl.RAND_bytes(8), uuid.uuid1(), uuid.uuid4(),
      next(tempfile._get_candidate_names()), bytes(multiprocessing.current_process().authkey), sep="\\n")
"""
RANDOM_STANDARD = """
import logging, random, secrets, sys, tempfile, uuid
assert "_ssl" not in sys.modules, "renewed in each child, for a millisecond"
print(random.random(), random.getstate()[1][:9], secrets.token_hex(8), uuid.uuid1(), uuid.uuid4(), next(tempfile._get_candidate_names()),
      logging._startTime, sep="\\n")
import ssl
print(ssl.RAND_bytes(8))
"""


def test_two_hundred_interpreters_share_nothing_of_the_standard_library(light):
    streams = [run(light, RANDOM_STANDARD)["stdout"].decode().splitlines() for _ in range(200)]
    assert {len(stream) for stream in streams} == {8}
    for row in zip(*streams):
        assert len(set(row)) == 200, row


RANDOM_NUMPY = RANDOM + "import numpy\nprint(numpy.random.rand(), numpy.random.default_rng().random(), sep='\\n')\n"


@pytest.mark.parametrize("template,modules,code", [
    ("minimal", ["random", "ssl", "tempfile", "uuid", "multiprocessing"], RANDOM),
    ("python", ["numpy", "pandas", "ssl", "tempfile", "uuid", "multiprocessing"], RANDOM_NUMPY),
])
def test_no_two_interpreters_share_a_stream(template, modules, code):
    rig = zygote_of(template, modules)
    try:
        streams = [run(rig, code)["stdout"].decode().splitlines() for _ in range(6)]
        for row in zip(*streams):
            assert len(set(row)) == 6, row
    finally:
        rig.close()


FORKS = """
import logging, os, random, threading
reader, writer = os.pipe()
if os.fork() == 0:
    thread = threading.Thread(target=logging.getLogger("child").warning, args=("heard",))
    thread.start()
    thread.join()
    os.write(writer, b"%r %d" % (random.random(), threading.main_thread().native_id == os.getpid()))
    os._exit(0)
os.wait()
drawn, _ = os.read(reader, 100).split()
print(float(drawn) != random.random(), threading.main_thread().native_id == os.getpid())
"""


def test_hooks_that_a_zygote_spares_its_children_are_called_in_theirs():
    rig = zygote_of("minimal", ["logging", "random", "threading"])
    try:
        end = run(rig, FORKS)
        assert (end["stdout"], b"heard" in end["stderr"]) == (b"True True\n", True), end
    finally:
        rig.close()


def test_imports_that_fail_or_leave_threads_stop_the_zygote():
    root = str(STATE / "templates/minimal/root")
    rig = Rig(root, str(BUILD / "python"), ["no_such_module"])
    assert "no_such_module" in rig.failure
    rig.close()


def test_the_end_of_a_sandbox_is_reported_and_its_zygote_continues(light):
    init = light.init()
    zygote_rig.signal.pidfd_send_signal(init[0], 9)
    time.sleep(0.1)
    with pytest.raises(RuntimeError, match="fork an interpreter|pid namespace"):
        light.fork(init=init)
    assert run(light, "print(1)")["stdout"] == b"1\n"


def test_few_descriptors_are_enough(light):
    one = light.fork(open_files=16)
    assert one.os_error == 0, one.failure
    outcome = one.execute("import os; print(sorted(os.listdir('/proc/self/fd'), key=int))")
    assert outcome["stdout"] == b"['0', '1', '2', '3', '15']\n" and outcome["executed"]["code"] == 0
    one.close()


def test_modules_of_the_workspace_are_found(light):
    code = "open('mine.py', 'w').write('x = 5')\nimport mine\nprint(mine.x, mine.__file__)"
    assert run(light, code)["stdout"] == b"5 /workspace/mine.py\n"


def test_nothing_is_left_of_many(light):
    before = len(os.listdir(f"/proc/{light.zygote_pid_outside()}/fd"))
    for _ in range(20):
        run(light, "print(1)")
    assert len(os.listdir(f"/proc/{light.zygote_pid_outside()}/fd")) == before
    children = pathlib.Path(f"/proc/{light.zygote_pid_outside()}/task/{light.zygote_pid_outside()}/children")
    assert children.read_text() == ""


def test_prewarming_leaves_no_trace(light):
    one = light.fork(prime=1)
    payload = zygote_rig.EXECUTE.pack(3, 0, 0, 0, 0) + b"/\0\0"
    one.control.sendall(zygote_rig.FRAME.pack(len(payload), light.inside["AGENT_EXECUTE"], 0, 1, 0) + payload)
    primed = one.gather(time.perf_counter(), 10)
    assert primed["executed"]["ends"] == 0 and primed["stdout"] == b""
    outcome = one.execute("import os; print(os.listdir('/tmp'), os.listdir('/workspace'), os.listdir('/run'),"
                          " [n for n in globals() if n[0] != '_'])")
    assert outcome["stdout"] == b"[] [] ['main.py'] ['os']\n"
    one.close()


def test_a_request_that_is_cut_short_is_refused(light):
    head, texts = zygote_rig.EXECUTE, b"/\0/run/main.py\0/run/main.py\0A=b\0"
    whole = head.pack(1, 0, 1, 1, 4) + texts + b"pass"
    for payload in (whole[:10], whole[:20], whole[:-10], head.pack(1, 0, 9, 0, 0) + texts, head.pack(1, 0, 1, 9, 0) + texts,
                    head.pack(1, 0, 0, 0, 99) + texts, head.pack(1, 0, 65535, 65535, 0xffffffff) + texts):
        one = light.fork()
        one.control.sendall(zygote_rig.FRAME.pack(len(payload), light.inside["AGENT_EXECUTE"], 0, 1, 0) + payload)
        outcome = one.gather(time.perf_counter(), 10)
        assert outcome["executed"]["code"] == 126 and b"cut short" in outcome["stderr"], (payload, outcome)
        one.close()

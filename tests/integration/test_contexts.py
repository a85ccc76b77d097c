"""Contexts: several interpreters in one session, in parallel; interrupted, restarted, removed; and the effect of
hostile code on its context and session."""

import concurrent.futures
import time

import pytest


@pytest.fixture
def session(daemon):
    made = daemon.session()
    yield made
    made.call("DELETE")


def make(session, **request):
    status, answer = session.call("POST", "/contexts", request)
    assert status == 201, answer
    return answer["id"]


class TestSeveral:
    def test_each_has_its_own_names(self, session):
        other = make(session, language="python", cwd="/tmp", env={"WORD": "other"})
        session.run("x = 1")
        assert session.run("x", other)["error"]["name"] == "NameError"
        assert session.value("import os; os.getcwd(), os.environ['WORD']", other) == "('/tmp', 'other')"
        assert session.value("x") == "1"
        assert [row["id"] for row in session.get()["contexts"]] == [other, "python"]

    def test_they_run_side_by_side_and_see_the_same_files(self, session):
        other = make(session)
        wait = "import os, time\nopen('{0}', 'w').close()\nwhile not os.path.exists('{1}'): time.sleep(0.01)\n'met'"
        with concurrent.futures.ThreadPoolExecutor() as pool:
            one = pool.submit(session.value, wait.format("a", "b"))
            two = pool.submit(session.value, wait.format("b", "a"), other)
            assert one.result() == two.result() == "'met'"

    def test_many_at_once(self, session):
        names = [make(session) for _ in range(8)]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            values = list(pool.map(lambda name: session.value("import pandas; pandas.Series([1, 2]).sum()", name), names))
        assert len(values) == 8 and all("3" in value for value in values)

    def test_cells_of_one_context_wait_for_each_other(self, session):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            slow = pool.submit(session.run, "import time; time.sleep(0.5); order = ['slow']")
            while session.get()["contexts"] == [] or session.get()["contexts"][0]["state"] != "busy":
                time.sleep(0.01)
            assert session.value("order + ['fast']") == "['slow', 'fast']"
            assert slow.result()["status"] == "ok"

    def test_the_queue_is_bounded(self, session):
        first = session.begin("import time; time.sleep(30)")
        first.next()
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            asked = [pool.submit(session.call, "POST", "/contexts/python/run", {"code": "1"}) for _ in range(40)]
            while session.get()["contexts"][0]["queued"] < 32 or sum(one.done() for one in asked) < 8:
                time.sleep(0.01)
            session.end()
            answers = [one.result() for one in asked]
        assert sum(status == 429 for status, _ in answers) == 8
        assert {answer["status"] for status, answer in answers if status == 200} == {"cancelled"}

    def test_too_many_contexts(self, session):
        for _ in range(16):
            make(session)
        status, answer = session.call("POST", "/contexts", {})
        assert status == 429 and "16 contexts" in answer["error"]["message"]


class TestNobodyAnswers:
    """A cell of a session has no stdin: a read returns end of file at once."""

    BRIEF = {"limits": {"wall_ms": 10_000}}

    @pytest.mark.parametrize("again", [False, True])
    def test_input_says_so(self, session, again):
        context = make(session, language="python") if again else "python"
        for code in ("input('name? ')", "x = 1\ninput()"):
            result = session.run(code, context, **self.BRIEF)
            assert result["error"]["name"] == "StdinNotImplementedError", result
        assert session.value("x", context) == "1"

    @pytest.mark.parametrize("end", ["exit()", "import sys; sys.stdin.close()", "import os, sys; os.close(0); sys.stdin.close()"])
    def test_stdin_that_a_cell_closed_is_there_again(self, session, end):
        """exit() of a notebook closes it."""
        session.run(end)
        said = session.run("input()", **self.BRIEF)["error"]
        assert said["name"] == ("ValueError" if "os.close" in end else "StdinNotImplementedError"), said

    def test_after_a_restart(self, session):
        session.run("1")
        assert session.call("POST", "/contexts/python/restart")[0] == 200
        assert session.run("input()", **self.BRIEF)["error"]["name"] == "StdinNotImplementedError"

    @pytest.mark.parametrize("code, value", [
        ("import sys; sys.stdin.read()", "''"), ("import os; os.read(0, 9)", "b''"),
        ("import subprocess; subprocess.run('cat; echo end', shell=True, stdout=-1).stdout", "b'end\\n'"),
        ("x = !cat; echo end\nlist(x)", "['end']"),
    ])
    def test_what_reads_sees_the_end(self, session, code, value):
        result = session.run(code, **self.BRIEF)
        assert result["status"] == "ok" and result["results"][-1]["data"]["text/plain"] == value, result

    def test_getpass_and_cell_magics(self, session):
        assert session.run("import getpass; getpass.getpass()", **self.BRIEF)["error"]["name"] == "EOFError"
        assert session.run("%%bash\nread x || echo none", **self.BRIEF)["stdout"] == "none\n"

    def test_bash(self, session):
        assert session.run("read x || echo none; cat; echo end", "bash", **self.BRIEF)["stdout"] == "none\nend\n"


class TestBash:
    def test_variables_functions_and_folder_stay(self, session):
        session.run("x=5; declare -A m; m[a]=7; f() { echo \"f $x ${m[a]}\"; }; cd /tmp", "bash")
        result = session.run("f; pwd; echo oops >&2; false", "bash")
        assert (result["status"], result["exit_code"]) == ("error", 1)
        assert (result["stdout"], result["stderr"]) == ("f 5 7\n/tmp\n", "oops\n")

    def test_an_interrupt_ends_the_cell_alone(self, session):
        session.run("x=1", "bash")
        events = session.begin("g() { sleep 30; echo no; }; echo begun; g; echo never", "bash")
        events.until("stdout")
        assert session.call("POST", "/contexts/bash/interrupt")[1] == {"interrupted": True}
        end = events.until("end")
        assert (end["status"], end["exit_code"], end["stdout"]) == ("error", 130, "begun\n")
        assert session.run("echo $x", "bash")["stdout"] == "1\n"

    def test_exit_ends_the_context_and_not_the_session(self, session):
        result = session.run("x=1; exit 3", "bash")
        assert (result["status"], result["exit_code"], result["cell"]["context_state"]) == ("error", 3, "lost")
        assert session.run("echo [$x]", "bash")["stdout"] == "[]\n"


# It begins when the fork is over: what Python calls after one swallows an interrupt.
STORM = """import os
me, (ready, go) = os.getpid(), os.pipe()
if os.fork() == 0:
    os.read(ready, 1)
    for _ in range(2000): os.kill(me, 2)
    os._exit(0)
os.write(go, b"x")
while True: pass"""


class TestInterrupt:
    def test_a_cell_is_interrupted_and_names_stay(self, session):
        session.run("x = 1")
        events = session.begin("x = 2\nprint('begun', flush=True)\nimport time; time.sleep(30)")
        events.until("stdout")
        assert session.call("POST", "/contexts/python/interrupt")[1] == {"interrupted": True}
        end = events.until("end")
        assert (end["status"], end["error"]["name"], end["cell"]["interrupted"]) == ("error", "KeyboardInterrupt", True)
        assert end["cell"]["context_state"] == "kept" and session.value("x") == "2"

    def test_nothing_runs(self, session):
        assert session.call("POST", "/contexts/python/interrupt")[1] == {"interrupted": False}

    def test_at_once(self, session):
        """The code may not have begun to listen when the interrupt comes."""
        events = session.begin("while True: pass")
        events.next()
        session.call("POST", "/contexts/python/interrupt")
        end = events.until("end")
        assert end["error"]["name"] == "KeyboardInterrupt" and end["cell"]["context_state"] == "kept"

    def test_a_storm_of_interrupts(self, session):
        """They meet the code, the telling of the first, and the time after; the cell that comes next may be met
        by the last of them as well. Each cell ends, and says why."""
        for _ in range(5):
            end = session.run(STORM)
            assert (end["status"], end["error"]["name"]) == ("error", "KeyboardInterrupt"), end
            assert end["cell"]["context_state"] == "kept"
            after = session.run("1 + 1")
            assert after["status"] == "ok" or after["error"]["name"] == "KeyboardInterrupt", after

    def test_a_storm_of_a_handlers_own_errors(self, session):
        end = session.run("import os, signal\nclass Stop(Exception): pass\ndef stop(number, frame): raise Stop\n"
                          "signal.signal(signal.SIGINT, stop)\n" + STORM)
        assert (end["status"], end["error"]["name"]) == ("error", "Stop"), end
        assert end["cell"]["context_state"] == "kept"

    def test_a_context_that_ignores_the_interrupt_is_killed_and_reported(self, session):
        events = session.begin("import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                               "print('deaf', flush=True)\nwhile True: time.sleep(1)")
        events.until("stdout")
        session.call("POST", "/contexts/python/interrupt")
        end = events.until("end")
        assert (end["status"], end["cell"]["context_state"]) == ("error", "lost")
        assert "did not stop when it was interrupted" in end["cell"]["context_end"] and end["error"]["name"] == "ContextEnded"
        assert session.value("1") == "1"

    def test_wall_time_is_an_interrupt(self, session):
        session.run("x = 1")
        result = session.run("import time; time.sleep(30)", limits={"wall_ms": 300})
        assert (result["status"], result["limit"]["name"]) == ("limit", "wall")
        assert result["cell"]["context_state"] == "kept" and session.value("x") == "1"

    def test_hanging_up_interrupts_a_cell(self, session):
        events = session.begin("x = 1\nprint('begun', flush=True)\nimport time; time.sleep(30)")
        events.until("stdout")
        events.hang_up()
        assert session.value("x") == "1"

    def test_restart_and_remove(self, session):
        session.run("x = 1")
        assert session.call("POST", "/contexts/python/restart")[0] == 200
        assert session.run("x")["error"]["name"] == "NameError"
        assert session.call("DELETE", "/contexts/python")[0] == 200
        assert session.value("2") == "2"


class TestWorst:
    """Each has one defined outcome, and the session goes on."""

    def outlives(self, session):
        assert session.value("20 + 1") == "21"
        assert session.run("echo well", "bash")["stdout"] == "well\n"

    def test_exit(self, session):
        result = session.run("import sys; sys.exit(3)")
        assert (result["status"], result["exit_code"], result["cell"]["context_state"]) == ("error", 3, "kept")
        self.outlives(session)

    @pytest.mark.parametrize("code", [0, 7])
    def test_os_exit(self, session, code):
        result = session.run(f"print('so far'); import os; os._exit({code})")
        assert (result["status"], result["exit_code"], result["stdout"]) == ("error", code, "so far\n")
        assert (result["error"]["name"], result["cell"]["context_state"]) == ("ContextEnded", "lost")
        self.outlives(session)

    def test_segfault(self, session):
        result = session.run("import ctypes; ctypes.string_at(0)")
        assert (result["status"], result["signal"], result["cell"]["context_state"]) == ("error", 11, "lost")
        self.outlives(session)

    def test_out_of_memory(self, daemon):
        session = daemon.session(limits={"memory_bytes": 160 << 20})
        result = session.run("x = bytearray(2 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1")
        assert (result["status"], result["fault"], result["limit"]["name"]) == ("limit", "limit", "memory")
        assert "memory" in result["cell"]["context_end"]
        self.outlives(session)
        session.end()

    def test_a_thousand_children(self, session):
        result = session.run("import os, time\nmade = 0\ntry:\n  for _ in range(1000):\n    if os.fork() == 0:\n"
                             "      time.sleep(60); os._exit(0)\n    made += 1\nexcept OSError as e: print(made, e.errno)")
        assert result["status"] == "ok" and result["stdout"].endswith(" 11\n")
        assert {"name": "processes", "count": 1} in result["limit_hits"]
        assert session.value("1") == "1"
        assert session.call("POST", "/contexts/python/restart")[0] == 200  # takes its children along
        self.outlives(session)

    def test_a_gigabyte_of_output(self, session):
        result = session.run("while True: print('x' * 65536)")
        assert (result["status"], result["limit"]["name"]) == ("limit", "output")
        assert len(result["stdout"]) < 1 << 21 and result["truncated"]["stdout_total_bytes"] > 1 << 24
        self.outlives(session)

    def test_invalid_utf8(self, session):
        result = session.run("import os; os.write(1, b'a\\xff\\xfeb'); print('\\udce9')")
        assert result["status"] == "ok" and result["stdout"].startswith("a\ufffd\ufffdb")
        self.outlives(session)

    def test_stdout_closed(self, session):
        assert session.run("import os; os.close(1)")["status"] in ("ok", "error")
        result = session.run("6 * 7")
        assert result["results"][0]["data"]["text/plain"] == "42"
        self.outlives(session)

    def test_its_kernel_module_deleted(self, session):
        session.run("import sys\nfor name in [n for n in sys.modules if 'glovebox' in n]: del sys.modules[name]")
        self.outlives(session)

    def test_its_control_socket_closed(self, session):
        result = session.run("import os; os.closerange(3, 100)")
        assert result["status"] in ("ok", "error", "limit")
        assert session.value("1") == "1"
        self.outlives(session)

    def test_the_disk_full(self, session):
        result = session.run("f = open('/workspace/fill', 'wb')\nwhile True: f.write(bytes(1 << 20)); f.flush()")
        assert (result["status"], result["limit"]["name"]) == ("limit", "disk")
        assert session.run("echo x > y", "bash")["status"] in ("error", "limit")
        assert session.run("import os; f.close() if 0 else os.remove('/workspace/fill'); os.ftruncate(f.fileno(), 0)")["status"] == "ok"
        self.outlives(session)

    def test_children_that_print_on(self, session):
        result = session.run("import subprocess\nc = subprocess.Popen(['sh', '-c', 'sleep 0.3; echo late'])\nprint('now')")
        assert result["stdout"] == "now\n"
        session.run("import time; time.sleep(0.1)")
        time.sleep(0.5)
        assert session.run("print('next')")["stdout"] == "late\nnext\n"


class TestTheSocketOfAnInterpreter:
    """What code can do with the one descriptor that its interpreter holds beside the three streams (decision 0104)."""

    LOOK = ("import array, os, socket, struct\n"
            "held = [n for n in map(int, os.listdir('/proc/self/fd')) if n > 2 and os.path.lexists(f'/proc/self/fd/{n}')]\n"
            "s = socket.socket(fileno=os.dup(held[0]))\n"
            "def say(kind, ident, payload, fds=()):\n"
            "    s.sendmsg([struct.pack('=IHHII', len(payload), kind, 0, ident, 0) + payload],\n"
            "              [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else [])\n")

    def test_it_is_the_only_one_and_leads_to_init(self, session):
        session.run(self.LOOK)
        assert session.value("len(held), s.type == socket.SOCK_SEQPACKET") == "(1, True)"
        assert session.value("struct.unpack('3i', s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]") == "1"
        failed = session.run("s.getsockopt(socket.SOL_SOCKET, 77)")
        assert failed["error"]["name"] == "OSError" and "92" in failed["error"]["value"]  # ENOPROTOOPT

    def test_a_child_does_not_have_it(self, session):
        session.run(self.LOOK + "import subprocess\ns.close()")
        seen = session.run("p = os.fork()\nif p == 0: os._exit(os.path.lexists(f'/proc/self/fd/{held[0]}'))\n"
                           "print(os.waitpid(p, 0)[1], subprocess.run(['ls', '/proc/self/fd'], capture_output=True).stdout.split())")
        assert seen["stdout"].startswith("0 ") and "'63'" not in seen["stdout"], seen

    def test_it_speaks_for_its_own_interpreter_only(self, session):
        """Frames of every kind under every number, and descriptors with them: a cell of another context runs on."""
        status, context = session.call("POST", "/contexts", {"language": "python"})
        assert status == 201, context
        name = context["id"]
        other = session.begin("import time\nprint('in', flush=True)\ntime.sleep(3)\nprint('end')", name)
        other.until("stdout")
        session.run(self.LOOK + "for kind in range(1, 64):\n    for ident in (0, 1, 2, 3, 16, 17, 18):\n"
                                "        say(kind, ident, bytes(16), (0,))\n        say(kind, ident, b'')\n")
        result = other.until("end")
        assert (result["status"], result["stdout"]) == ("ok", "in\nend\n"), result
        assert session.run("print(1)", name)["stdout"] == "1\n"


def test_a_program_that_uses_up_the_memory_leaves_the_first_cell_an_interpreter(daemon):
    session = daemon.session(limits={"memory_bytes": 96 << 20, "open_files": 16})
    status, done = session.call("POST", "/processes?wait=20", {"command": ["python3", "-c", "x = bytearray(300 << 20)"]})
    assert (status, done["signal"]) == (201, 9), done
    assert session.value("6 * 7") == "42" and session.get()["state"] == "running"
    session.end()

"""Sessions: created, used, listed, changed, ended; and their end by deadlines."""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse

import pytest
from session_rig import Daemon


@pytest.fixture
def session(daemon):
    made = daemon.session()
    yield made
    made.call("DELETE")


def ended(session, seconds=10):
    """Its tombstone, once it has ended."""
    for _ in range(int(seconds * 50)):
        answer = session.get()
        if answer["state"] == "ended":
            return answer["ended"]
        time.sleep(0.02)
    raise AssertionError("the session lives on")


class TestCells:
    def test_names_stay(self, session):
        first = session.run("x = 41\nprint('set')")
        assert (first["status"], first["stdout"], first["usage"]["start"]) == ("ok", "set\n", "session")
        assert session.value("x + 1") == "42"
        assert session.run("1")["cell"] == {
            "session": session.answer["id"], "context": "python", "number": 3, "interrupted": False,
            "context_state": "kept", "context_end": None}

    def test_an_error_leaves_the_names(self, session):
        session.run("x = 1")
        failed = session.run("x = 2\nraise ValueError('no')")
        assert (failed["status"], failed["fault"], failed["error"]["name"]) == ("error", "code", "ValueError")
        assert session.value("x") == "2"

    def test_environment_and_folder_are_sent_once(self, daemon):
        session = daemon.session(env={"WORD": "given"}, cwd="/tmp")
        assert session.value("import os; os.environ['WORD'], os.getcwd()") == "('given', '/tmp')"
        session.run("os.environ['WORD'] = 'own'; os.chdir('/workspace')")
        assert session.value("os.environ['WORD'], os.getcwd()") == "('own', '/workspace')"
        session.end()

    def test_events(self, session):
        events = session.begin("print('a', flush=True)\n1/0")
        assert events.next()[0] == "started"
        assert events.until("stdout")["data"].startswith("a")
        assert events.until("error")["name"] == "ZeroDivisionError"
        assert events.until("end")["cell"]["number"] == 1

    def test_a_cell_is_a_run(self, session, daemon):
        result = session.run("7")
        assert daemon.call("GET", f"/v1/runs/{result['id']}")[1] == result

    def test_a_large_cell(self, session):
        assert session.run("x = '" + "y" * 200_000 + "'\nlen(x)")["results"][0]["data"]["text/plain"] == "200000"

    def test_limits_of_a_cell(self, session):
        status, answer = session.call("POST", "/contexts/python/run", {"code": "1", "limits": {"memory_bytes": 1 << 28}})
        assert (status, answer["error"]["code"]) == (422, "limit") and "session" in answer["error"]["message"]
        status, answer = session.call("POST", "/contexts/python/run", {"code": "1", "limits": {"wall_ms": 10**9}})
        assert (status, answer["error"]["code"]) == (422, "limit")

    @pytest.mark.parametrize("body, word", [({}, "no 'code'"), ({"code": "1", "stdin": "x"}, "'stdin' is unknown"),
                                            ({"code": 1}, "must be a text")])
    def test_bad_cells(self, session, body, word):
        status, answer = session.call("POST", "/contexts/python/run", body)
        assert status == 400 and word in answer["error"]["message"]


class TestTable:
    def test_a_cell_has_no_environment_of_its_own(self, session):
        status, answer = session.call("POST", "/contexts/python/run", {"code": "1", "env": {"A": "b"}})
        assert status == 400 and "a cell has no 'env'" in answer["error"]["message"]

    def test_get_list_change_end(self, daemon):
        one = daemon.session(metadata={"user": "a", "app": "x"})
        two = daemon.session(metadata={"user": "b", "app": "x"}, ttl_seconds=60, idle_seconds=30)
        found = daemon.call("GET", "/v1/sessions?metadata=app%3Dx%26user%3Db")[1]["sessions"]
        assert [row["id"] for row in found] == [two.answer["id"]]
        assert found[0]["metadata"] == {"user": "b", "app": "x"} and found[0]["idle_seconds"] == 30
        odd = daemon.session(metadata={"a&b": "c = d%41"})
        wanted = urllib.parse.urlencode({"metadata": urllib.parse.urlencode({"a&b": "c = d%41"}, quote_via=urllib.parse.quote)})
        assert [each["id"] for each in daemon.call("GET", f"/v1/sessions?{wanted}")[1]["sessions"]] == [odd.answer["id"]]
        assert daemon.call("GET", "/v1/sessions?metadata=a%2526b%3Dc")[1]["sessions"] == []
        odd.end()
        page = daemon.call("GET", "/v1/sessions?metadata=app%3Dx&limit=1")[1]
        assert page["sessions"][0]["id"] == two.answer["id"] == page["next_cursor"]
        rest = daemon.call("GET", f"/v1/sessions?metadata=app%3Dx&limit=1&cursor={page['next_cursor']}")[1]
        assert rest["sessions"][0]["id"] == one.answer["id"] and rest["next_cursor"] is None
        status, changed = one.call("PATCH", "", {"metadata": {"user": "c"}, "ttl_seconds": 99})
        assert status == 200 and changed["metadata"] == {"user": "c"}
        assert changed["expires_at"] < one.answer["expires_at"]
        tombstone = one.end()
        assert tombstone["ended"]["why"] == "deleted" and tombstone["ended"]["kept"].startswith("nothing")
        assert one.get()["state"] == "ended"
        assert one.call("POST", "/contexts/python/run", {"code": "1"})[0] == 409
        assert daemon.call("GET", "/v1/sessions?metadata=user%3Dc")[1]["sessions"] == []
        assert len(daemon.call("GET", "/v1/sessions?metadata=user%3Dc&state=ended")[1]["sessions"]) == 1
        two.end()
        daemon.idle()

    def test_unknown(self, daemon):
        assert daemon.call("GET", "/v1/sessions/ses_0")[0] == 404
        assert daemon.call("POST", "/v1/sessions", {"code": "1"})[0] == 400
        assert daemon.call("POST", "/v1/sessions", {"policy": "data", "metadata": {"a": 1}})[0] == 400
        assert daemon.call("GET", "/v1/sessions?limit=0")[0] == 400


class TestDeadlines:
    def test_an_idle_session_ends(self, daemon):
        session = daemon.session(idle_seconds=0.5)
        session.run("import time; time.sleep(1)")  # it is not idle while a cell runs
        assert session.get()["state"] == "running"
        assert ended(session)["why"] == "idle"

    def test_a_touch_keeps_it(self, daemon):
        session = daemon.session(idle_seconds=1)
        for _ in range(6):
            time.sleep(0.3)
            assert session.call("PATCH", "", {})[1]["state"] == "running"
        session.end()

    def test_the_time_to_live_ends_a_cell_too(self, daemon):
        session = daemon.session(ttl_seconds=0.7)
        result = session.run("import time; time.sleep(30)")
        assert (result["status"], result["error"]["name"]) == ("cancelled", "SessionEnded")
        assert ended(session)["why"] == "expired"
        daemon.idle()


@pytest.fixture
def own_state():
    """A state folder of its own, where every user may go, with a copy of one template."""
    from conftest import STATE  # pylint: disable=import-outside-toplevel

    state = pathlib.Path(tempfile.mkdtemp())
    state.chmod(0o755)
    (state / "templates").mkdir()
    subprocess.run(["cp", "-a", "--reflink=auto", STATE / "templates" / "minimal", state / "templates"], check=True)
    yield state
    shutil.rmtree(state)


def comes_back(daemon, path):
    """The answer of the daemon that took the place of the one that was killed."""
    for _ in range(500):
        try:
            status, answer = daemon.call("GET", path)
            if status == 200 and answer["state"] == "ended":
                return answer
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.02)
    raise AssertionError("no daemon came back")


@pytest.fixture
def started(tmp_path):
    """Starts daemons that end with the test, also when it fails."""
    daemons = []

    def start(state=None, policies=None):
        from conftest import Glovebox  # pylint: disable=import-outside-toplevel

        glovebox = Glovebox(tmp_path)
        glovebox.state = state or glovebox.state
        daemons.append(Daemon(glovebox, tmp_path, slots=4, policies=policies))
        return daemons[-1]

    yield start
    for daemon in daemons:
        if daemon.process.poll() is None:
            daemon.stop()


class TestRestart:
    def test_sessions_end_with_their_daemon_and_the_loss_is_reported(self, own_state, started):
        first = started(own_state)
        killed, deleted = first.session(policy="minimal"), first.session(policy="minimal")
        deleted.end()
        events = killed.begin("print('begun', flush=True)\nimport time; time.sleep(60)")
        events.until("stdout")
        os.kill(first.daemon_pid(), signal.SIGKILL)
        second = first  # `glovebox serve` starts the next daemon
        why = comes_back(second, killed.place)["ended"]
        assert why["why"] == "daemon" and why["kept"].startswith("nothing")
        assert second.call("GET", deleted.place)[1]["ended"]["why"] == "deleted"
        assert second.call("POST", killed.place + "/contexts/python/run", {"code": "1"})[0] == 409
        alive = second.session(policy="minimal")
        second.stop()
        third = started(own_state)
        gone = third.call("GET", alive.place)[1]
        assert gone["ended"]["why"] == "stopped" and gone["idle_seconds"] is None
        third.stop()


class TestPolicy:
    def test_number_age_and_memory_are_bounded(self, started, tmp_path):
        (tmp_path / "p").mkdir()
        (tmp_path / "p" / "few.yaml").write_text(
            "name: few\ntemplate: minimal\nlanguages: [python]\nlimits: {memory: 128MiB}\nmaximum: {memory: 1GiB}\n"
            "sessions: {max: 1, idle: 5s, age: 60s, memory: 96MiB}\n")
        daemon = started(policies=str(tmp_path / "p"))
        session = daemon.session(policy="few")
        assert session.answer["idle_seconds"] == 5 and session.answer["limits"]["memory_bytes"] == 96 << 20
        status, answer = daemon.call("POST", "/v1/sessions", {"policy": "few"})
        assert status == 429 and "policy few allows 1 sessions" in answer["error"]["message"]
        assert session.call("PATCH", "", {"ttl_seconds": 61})[0] == 422
        session.end()
        for asked in ({"ttl_seconds": 61}, {"idle_seconds": 6}, {"limits": {"memory_bytes": 128 << 20}}):
            status, answer = daemon.call("POST", "/v1/sessions", {"policy": "few"} | asked)
            assert (status, answer["error"]["code"]) == (422, "limit"), answer
        daemon.stop()


    def test_marks_are_bounded(self, started, glovebox, tmp_path):
        (tmp_path / "p").mkdir()
        head = "template: minimal\nlanguages: [python]\nlimits: {memory: 256MiB}\n"
        for name, bounds in {"two": "checkpoints: 2", "none": "checkpoints: 0", "small": "checkpoints_size: 40MiB"}.items():
            (tmp_path / "p" / f"{name}.yaml").write_text(f"name: {name}\n{head}sessions: {{{bounds}}}\n")
        daemon = started(policies=str(tmp_path / "p"))
        shown = glovebox("policy", "show", "small", "--json", env={"GLOVEBOX_POLICIES": str(tmp_path / "p")}).stdout
        assert json.loads(shown)["sessions"] == {"checkpoints_bytes": 40 << 20}
        shown = glovebox("policy", "show", "none", env={"GLOVEBOX_POLICIES": str(tmp_path / "p")}).stdout
        assert b"sessions         checkpoints 0\n" in shown
        two, none, small = (daemon.session(policy=name) for name in ("two", "none", "small"))
        made = [two.call("POST", "/checkpoints", {})[1]["id"] for _ in range(2)]
        status, answer = two.call("POST", "/checkpoints", {})
        assert status == 429 and "policy two allows a session 2 checkpoints" in answer["error"]["message"], answer
        two.call("DELETE", f"/checkpoints/{made[0]}")
        assert two.call("POST", "/checkpoints", {})[0] == 201
        status, answer = none.call("POST", "/checkpoints", {})
        assert status == 422 and "policy none allows no checkpoints" in answer["error"]["message"], answer
        status, first = small.call("POST", "/checkpoints", {})
        assert status == 201 and first["bytes"] < 20 << 20, "the next is larger, by what it has in it"
        small.run("import os; big = os.urandom(30 << 20)")
        for _ in range(2):
            status, answer = small.call("POST", "/checkpoints", {})
            assert status == 422 and "40 MiB (sessions.checkpoints_size)" in answer["error"]["message"], answer
        daemon.stop()


TICK = """import itertools, threading, time
ticks = 0
def tick():
    global ticks
    while True:
        ticks += 1
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()"""


class TestPause:
    def test_what_runs_stands_still_and_goes_on(self, session):
        session.run(TICK)
        started = session.call("POST", "/processes", {"shell": "i=0; while :; do i=$((i+1)); echo $i >count; sleep 0.01; done"})[1]
        status, paused = session.call("POST", "/pause")
        assert (status, paused["state"], paused["expires_at"], paused["idle_at"]) == (200, "paused", None, None)
        assert paused["paused_at"] and session.call("POST", "/pause")[0] == 200  # once more changes nothing
        before = [session.call(*call) for call in (
            ("POST", "/contexts/python/run", {"code": "1"}), ("GET", "/files/count"), ("POST", "/contexts", {}),
            ("POST", "/contexts/bash/run", {"code": "1"}), ("POST", "/processes", {"shell": "true"}), ("PATCH", "", {"ttl_seconds": 5}),
            ("POST", f"/processes/{started['id']}/signal", {"signal": "SIGCONT"}), ("POST", "/contexts/python/restart"))]
        for status, answer in before:
            assert status == 409 and "paused" in answer["error"]["message"], answer
        assert session.call("PATCH", "", {"metadata": {"a": "b"}})[0] == 200
        time.sleep(0.6)
        status, resumed = session.call("POST", "/resume")
        assert (status, resumed["state"], resumed["paused_at"]) == (200, "running", None) and resumed["expires_at"]
        first = int(session.value("ticks"))
        for _ in range(500):
            if int(session.value("ticks")) > first:
                break
        else:
            raise AssertionError("the thread stands still")
        assert session.call("GET", f"/processes/{started['id']}")[1]["state"] == "running"

    def test_nothing_runs_meanwhile(self, daemon):
        session = daemon.session()
        session.run("import threading\ndef spin():\n    while True: pass\nthreading.Thread(target=spin, daemon=True).start()")
        session.call("POST", "/pause")
        time.sleep(0.2)  # for the signal; init is a process as others are
        before = session.get()["usage"]["cpu_ms"]
        time.sleep(0.5)
        assert session.get()["usage"]["cpu_ms"] < before + 100
        assert session.call("POST", "/resume")[0] == 200
        session.end()

    def test_deadlines_stand_still(self, daemon):
        session = daemon.session(ttl_seconds=4, idle_seconds=3.5)
        killed_late = session.call("POST", "/processes", {"command": ["sleep", "100"], "timeout_ms": 3500})[1]
        assert session.call("POST", "/pause")[0] == 200
        time.sleep(4.2)
        assert session.get()["state"] == "paused"
        assert session.call("POST", "/resume")[0] == 200
        process = session.call("GET", f"/processes/{killed_late['id']}")[1]
        assert (process["state"], process["timed_out"]) == ("running", False)
        assert ended(session)["why"] in ("idle", "expired")

    def test_with_its_files_only(self, session):
        session.run("x = 1\nopen('kept', 'w').write('here')")
        session.run("y=1", "bash")
        server = session.call("POST", "/processes", {"command": ["sleep", "100"]})[1]
        assert session.call("POST", "/pause?keep=files")[1]["state"] == "paused"
        for _ in range(500):
            if session.call("GET", f"/processes/{server['id']}")[1]["state"] == "ended":
                break
            time.sleep(0.01)
        assert session.call("POST", "/resume")[0] == 200
        assert session.value("open('kept').read()") == "'here'"
        assert session.run("x")["error"]["name"] == "NameError"
        assert session.run("echo [$y]", "bash")["stdout"] == "[]\n"
        assert session.get()["contexts"][0]["last_end"] == "the session was paused with its files only"

    def test_not_while_a_cell_runs_and_not_by_other_words(self, session):
        events = session.begin("import time; print('in', flush=True); time.sleep(60)")
        events.until("stdout")
        status, answer = session.call("POST", "/pause")
        assert status == 409 and "interrupt" in answer["error"]["message"]
        session.call("POST", "/contexts/python/interrupt")
        events.until("end")
        assert session.call("POST", "/pause?keep=some")[0] == 400
        assert session.call("POST", "/resume")[0] == 200  # it runs already

    def test_a_paused_session_ends_as_any_other(self, daemon):
        session = daemon.session()
        session.run("1")
        session.call("POST", "/pause")
        assert session.end()["ended"]["why"] == "deleted"
        assert session.call("POST", "/resume")[0] == 409 and session.call("POST", "/pause")[0] == 409
        daemon.idle()

    def test_a_session_that_runs_during_its_pause_is_ended(self, session):
        """Wherever the machine has no freezer, and here because the test thaws: it is believed by its processor time."""
        process = session.call("POST", "/processes", {"shell": ">busy; while :; do :; done"})[1]
        for _ in range(3000):
            if session.call("POST", "/files:stat", {"path": "busy"})[0] == 200:
                break
            time.sleep(0.01)
        session.call("POST", "/pause")
        outer = [int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()
                 and ns_pid(entry, process["pid"]) and b"while :; do :; done" in cmdline(entry)]
        assert len(outer) == 1
        groups = [line.split(":", 2)[1:] for line in pathlib.Path(f"/proc/{outer[0]}/cgroup").read_text().splitlines()]
        time.sleep(1.2)
        for _ in range(1200):  # gloveboxd stops it again each second, which may be at once
            for kind, path in groups:
                with contextlib.suppress(OSError):
                    pathlib.Path(f"/sys/fs/cgroup/{kind}{path}/{'freezer.state' if kind else 'cgroup.freeze'}").write_text(
                        "THAWED" if kind else "0")
            try:
                os.kill(outer[0], signal.SIGCONT)
            except ProcessLookupError:
                break
            time.sleep(0.05)
        assert "processor time" in ended(session, 60)["message"]


def cmdline(entry):
    try:
        return (entry / "cmdline").read_bytes()
    except OSError:
        return b""


def ns_pid(entry, pid):
    try:
        return f"\t{pid}\n" in next(line for line in (entry / "status").open() if line.startswith("NSpid"))
    except (OSError, StopIteration):
        return False


ASK_AND_COUNT = """
import socket, time
begin, count = time.monotonic(), 0
while time.monotonic() - begin < 4:
    try:
        socket.socket(socket.AF_ALG)
    except OSError:
        count += 1
[count, time.monotonic() - begin]
"""


def test_refused_calls_without_end_are_answered_at_a_bounded_rate(daemon):
    """The work of answering them is init's, which goes before every sandbox: a program that asks too often waits (init/pace.h)."""
    session = daemon.session()
    first, first_s = json.loads(session.value(ASK_AND_COUNT))
    count, took_s = json.loads(session.value(ASK_AND_COUNT))
    session.end()
    assert first <= 10000 + 2000 * (first_s + 1)
    assert count <= 10000 + 2000 * (took_s + 1)  # what was not used between the cells is given back
    assert first > 0 and count > 0

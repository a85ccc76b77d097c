"""Sessions: created, used, listed, changed, ended; and what becomes of them when nobody ends them."""

import http.client
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

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

    def test_the_environment_and_the_folder_are_told_once(self, daemon):
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
        page = daemon.call("GET", "/v1/sessions?metadata=app%3Dx&limit=1")[1]
        assert page["sessions"][0]["id"] == two.answer["id"] == page["next"]
        rest = daemon.call("GET", f"/v1/sessions?metadata=app%3Dx&limit=1&after={page['next']}")[1]
        assert rest["sessions"][0]["id"] == one.answer["id"] and rest["next"] is None
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
    def test_sessions_end_with_their_daemon_and_that_is_told(self, own_state, started):
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
        assert third.call("GET", alive.place)[1]["ended"]["why"] == "stopped"
        third.stop()


class TestPolicy:
    def test_number_age_and_memory_are_bounded(self, started, tmp_path):
        (tmp_path / "p").mkdir()
        (tmp_path / "p" / "few.yaml").write_text(
            "name: few\ntemplate: minimal\nlanguages: [python]\nlimits: {memory: 128MiB}\nmaximum: {memory: 1GiB}\n"
            "sessions: {most: 1, idle: 5s, age: 60s, memory: 96MiB}\n")
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

"""Contexts that run by a driver: names stay, values and errors are reported; figures of R are there without a call that
saves them. The templates are built by hand: glovebox template build r, and node."""

import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess

import pytest
from conftest import Glovebox
from serving import state_of_its_own
from session_rig import Daemon

DRIVER = pathlib.Path(__file__).resolve().parents[2] / "src/engine/session/drivers/cells.R"

POLICY = """name: {0}
description: Cells of one language.
template: {0}
languages: [{0}, bash]
limits: {{wall: 60s, cpu: 60s, memory: 512MiB, processes: 64, disk: 256MiB, inodes: 16384, output: 1MiB, artifacts: 64MiB}}
network: none
"""


def session_in(language, folder):
    """A session with the template of that name, if it is there."""
    glovebox = Glovebox(folder)
    if not (glovebox.state / "templates" / language / "manifest.json").exists():
        pytest.skip(f"no template {language} here: glovebox template build {language}")
    state_of_its_own(glovebox)
    policies = folder / "policies"
    policies.mkdir()
    (policies / f"{language}.yaml").write_text(POLICY.format(language))
    daemon = Daemon(glovebox, folder, policies=str(policies))
    made = daemon.session(policy=language)
    made.run("1", language)  # an interpreter takes its time to start
    yield made
    made.end()
    daemon.stop()


@pytest.fixture(scope="module")
def r(tmp_path_factory):
    yield from session_in("r", tmp_path_factory.mktemp("r"))


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    yield from session_in("node", tmp_path_factory.mktemp("node"))


def shown(result):
    return [one["data"].get("text/plain") for one in result["results"]]


class TestR:
    def test_names_stay_and_the_last_value_is_the_result(self, r):
        r.run("x <- 5", "r")
        result = r.run("x * 2\nx + 1", "r")
        assert result["status"] == "ok" and shown(result) == ["[1] 10", "[1] 6"]
        assert [one["main"] for one in result["results"]] == [False, True]
        assert shown(r.run("invisible(x)", "r")) == []

    def test_text_is_unicode(self, r):
        assert shown(r.run("cat('a\\n'); 'é\\\\\"日本'", "r")) == ['[1] "é\\\\\\"日本"']

    def test_streams_stay_apart(self, r):
        result = r.run("cat('out\\n'); message('err'); warning('look'); system('echo child')", "r")
        assert (result["stdout"], result["stderr"]) == ("out\nchild\n", "err\nWarning: look\n")

    def test_an_error_has_message_and_calls(self, r):
        result = r.run("f <- function(n) {\n  stop('boom ', n)\n}\ng <- function() f(3)\ng()", "r")
        error = result["error"]
        assert (result["status"], error["name"], error["value"]) == ("error", "Error", "boom 3")
        assert error["traceback"] == "Error in f(3) : boom 3\nTraceback:\n1: g()\n2: f(3)"
        assert [(frame["line"], frame["function"]) for frame in error["frames"]] == [(5, "g"), (4, "f")]

    @pytest.mark.parametrize("code, name, words", [
        ("stop('top')", "Error", "top"),
        ("1 +", "parseError", "unexpected end of input"),
        ("log('a')", "Error", "non-numeric argument"),
        ("library(nope)", "packageNotFoundError", "no package called"),
        ("stop(structure(class = c('mine', 'error', 'condition'), list(message = 'm', call = NULL)))", "mine", "m"),
    ])
    def test_errors(self, r, code, name, words):
        error = r.run(code, "r")["error"]
        assert error["name"] == name and words in error["value"]
        assert "eval(" not in error["traceback"] and "tryCatch" not in error["traceback"]

    @pytest.mark.parametrize("code, count", [("plot(1:10); lines(10:1)", 1), ("plot(1); plot(2)\nhist(c(1, 2, 2))", 3),
                                             ("par(mfrow = c(1, 2)); plot(1); plot(2); plot(3)", 2),
                                             ("library(grid); grid.newpage(); grid.circle()", 1)])
    def test_figures(self, r, code, count):
        result = r.run(code, "r")
        assert result["status"] == "ok" and len(result["results"]) == count
        for one in result["results"]:
            assert base64.b64decode(one["data"]["image/png"]).startswith(b"\x89PNG")
            assert "<svg" in one["data"]["image/svg+xml"]
        assert r.run("list.files('/workspace', pattern = 'Rplots')", "r")["results"][0]["data"] == {
            "text/plain": "character(0)"}

    def test_an_interrupt_ends_the_cell_and_names_stay(self, r):
        r.run("x <- 7", "r")
        events = r.begin("cat('begun\\n'); repeat {}", "r")
        events.until("stdout")
        assert r.call("POST", "/contexts/r/interrupt")[1] == {"interrupted": True}
        end = events.until("end")
        assert (end["status"], end["error"]["name"], end["cell"]["context_state"]) == ("error", "KeyboardInterrupt", "kept")
        assert shown(r.run("x", "r")) == ["[1] 7"]

    def test_quit_ends_the_context_and_not_the_session(self, r):
        result = r.run("quit(status = 4)", "r")
        assert (result["status"], result["exit_code"], result["cell"]["context_state"]) == ("error", 4, "lost")
        assert shown(r.run("exists('x')", "r")) == ["[1] FALSE"]


class TestJavascript:
    def test_names_stay_and_the_last_value_is_the_result(self, node):
        node.run("const x = { a: [1, 2] }", "javascript")
        result = node.run("display('seen'); x", "javascript")
        assert shown(result) == ["seen", "{ a: [ 1, 2 ] }"]
        assert result["results"][1]["data"]["application/json"] == {"a": [1, 2]}
        assert shown(node.run("await new Promise((done) => setTimeout(done, 10, 7))", "javascript")) == ["7"]

    def test_an_error_has_name_message_and_stack(self, node):
        result = node.run("function f() { null.x; }\nf()", "javascript")
        assert (result["status"], result["error"]["name"]) == ("error", "TypeError")
        assert "at f (<cell" in result["error"]["traceback"]

    def test_an_interrupt_ends_the_cell_and_names_stay(self, node):
        node.run("y = 7", "javascript")
        events = node.begin("console.log('begun'); for (;;);", "javascript")
        events.until("stdout")
        node.call("POST", "/contexts/javascript/interrupt")
        end = events.until("end")
        assert (end["error"]["name"], end["cell"]["context_state"]) == ("KeyboardInterrupt", "kept")
        assert shown(node.run("y", "javascript")) == ["7"]


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="needs Rscript on this machine")
def test_the_driver_by_itself(tmp_path):
    ours, theirs = socket.socketpair()
    driver = subprocess.Popen(["sh", "-c", f'exec 3<&{theirs.fileno()}; exec Rscript --vanilla -e "$0" "$1"',
                               "eval(parse(text = commandArgs(TRUE)))", DRIVER.read_text()],
                              pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True)
    theirs.close()
    try:
        ours.settimeout(60)
        lines = ours.makefile("rb")
        cell = tmp_path / "cell"

        def run(code):
            cell.write_text(code)
            ours.sendall(f"{cell}\n".encode())
            said = []
            while not said or not said[-1].startswith("X "):
                said.append(lines.readline().decode().rstrip("\n"))
            return said

        assert run("x <- 1") == ["X 0"]
        value, end = run("x + 1")
        assert (value[:2], json.loads(value[2:]), end) == ("V ", {"text/plain": "[1] 2"}, "X 0")
        failure, end = run("stop('no')")
        assert (failure[:2], json.loads(failure[2:])["value"], end) == ("E ", "no", "X 1")
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        ours.close()

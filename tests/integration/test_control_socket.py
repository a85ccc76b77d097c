"""Code uses the socket between its interpreter and glovebox-init, and tries to change the counters for verdicts. The
run must end as the program's own failure, never as a fault of glovebox, and a limit that it reached must be named."""

import json
import subprocess
import time

import pytest
from conftest import Glovebox

pytestmark = pytest.mark.alone  # storms of forks

FRAME = """
import array, os, resource, signal, socket, struct, time
def frame(kind, payload): return struct.pack("<IHHII", len(payload), kind, 0, 1, 0) + payload
def result(size): return frame(76, struct.pack("<HHI", 2, 0, 0) + b"x" * size)
def show(json):
    body = b'{"data":{"application/json":' + json + b'}}'
    for at in range(0, len(body), 60000):
        talk.send(frame(76, struct.pack("<HHI", 2, at + 60000 >= len(body), 0) + body[at:at + 60000]))
def executed(code): return frame(77, struct.pack("<iiII", code, 0, 1, 1))
talk = socket.socket(fileno=os.dup(63))
null = os.open("/dev/null", os.O_RDONLY)
def rights(count): return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * count))]
def refused():
    for _ in range(300):
        try:
            socket.socket(socket.AF_INET)
        except OSError:
            pass
"""

# What it does, and the status and exit code that the caller gets.
WORDS = {
    "descriptors in pairs": ("for _ in range(2000):\n  try: talk.sendmsg([result(1)], rights(2))\n  except OSError: pass\n"
                             "open('/workspace/kept', 'w').close()", "ok", 0),
    "an exit code that none has": ("talk.send(executed(300))", "ok", 0),
    "its own end": ("talk.send(executed(7))\ntime.sleep(9)", "error", 7),
    "its own end behind a result": ("talk.send(result(10) + executed(7))\ntime.sleep(9)", "error", 7),
    "an end that its message cuts": ("talk.send(result(10) + executed(7)[:-4])", "ok", 0),
    "an end that says more than comes": ("talk.send(result(10) + struct.pack('<IHHII', 4000000000, 77, 0, 1, 0) + bytes(16))", "ok", 0),
    "a third frame of one message": ("talk.send(2 * result(10) + executed(7))", "ok", 0),
    "a first word behind a result": ("talk.send(result(1) + frame(75, struct.pack('<Ii', 1, 0)))", "ok", 0),
    "a first word after the last": ("refused()\nfor _ in range(40): talk.send(result(1000))\n"
                                    "talk.sendmsg([frame(75, struct.pack('<Ii', 1, 0))], rights(1))\n"
                                    "os.kill(os.getpid(), 9)", "error", None),
    "its own end behind a message of no bytes": ("talk.send(b'')\ntalk.sendmsg([b''], rights(1))\ntalk.send(executed(7))\ntime.sleep(9)",
                                                 "error", 7),
    "its own end behind the end of its words": ("talk.shutdown(socket.SHUT_WR)\ntime.sleep(1)", "ok", 0),
    "results without end": ("while True: talk.send(result(60000))", "limit", None),
    "a message of many keys, again and again": (
        "def say(text):\n  body = text.encode()\n  for at in range(0, len(body), 60000):\n    piece = body[at:at + 60000]\n"
        "    talk.send(frame(76, struct.pack('<HHI', 2, at + 60000 >= len(body), 0) + piece))\n"
        "keys = ','.join(f'\"{i:x}\":1' for i in range(49000))\n"
        "for _ in range(60): say('{\"else\":{' + keys + '}}')\n", "ok", 0),
    "nothing, closed": ("os.close(63)", "ok", 0),
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """A service, for its interpreters are forked; the first run waits until it answers."""
    folder = tmp_path_factory.mktemp("serve")
    service = Glovebox(folder).start("serve", "--socket", folder / "s", "--slots", "8", stderr=subprocess.DEVNULL)
    end = time.monotonic() + 20
    while not (folder / "s").exists() and time.monotonic() < end:
        time.sleep(0.02)
    yield folder / "s"
    service.terminate()
    service.wait(20)


@pytest.fixture
def run(glovebox, python_template, daemon):
    return lambda code, *options: json.loads(glovebox("run", "--json", "--daemon", daemon, *options, "-c", code).stdout)


@pytest.mark.parametrize("word", WORDS)
def test_messages_of_code_on_its_interpreters_socket(run, word):
    code, status, exit_code = WORDS[word]
    result = run(FRAME + code)
    if "Bad file descriptor" in result["stderr"]:
        pytest.skip("no forked interpreter here")
    assert (result["status"], result["exit_code"]) == (status, exit_code), result
    if word == "descriptors in pairs":
        assert [artifact["path"] for artifact in result["artifacts"]] == ["kept"]


def test_results_never_have_more_json_than_a_reader_takes(run):
    """Many readers take 32 levels, and a tree of the results needs much more memory than their text."""
    nested = FRAME + "for levels in (25, 26, 60): show(b'[' * levels + b'1' + b']' * levels)"
    many = FRAME + "for _ in range(40): show(b'[' + b'1,' * 33000 + b'1]')"
    for code, shown, left_out in ((nested, 1, 2), (many, 3, 37)):
        result = run(code)
        assert (result["status"], len(result["results"])) == ("ok", shown)
        assert [(row["layer"], row["count"]) for row in result["denials"]] == [("output", left_out)]


@pytest.mark.parametrize("go", range(8))
def test_a_fork_bomb_is_reported_as_the_limit(run, go):
    bomb = "import os, time\nfor _ in range(10): os.fork()\ntime.sleep(60)"
    result = run(bomb, "--wall", "2s")
    if [hit["name"] for hit in result["limit_hits"]] == ["wall"]:  # a busy machine: it has not forked so often yet
        result = run(bomb, "--wall", "30s")
    assert result["status"] == "limit", result
    assert "processes" in [hit["name"] for hit in result["limit_hits"]], result


def test_a_closed_workspace_is_opened_for_its_files(run):
    result = run("import os\nos.mkdir('p')\nopen('p/x', 'w').write('1')\nos.chmod('p/x', 0)\nos.chmod('p', 0)\n"
                 "os.chmod('/workspace', 0)")
    assert [artifact["path"] for artifact in result["artifacts"]] == ["p/x"]

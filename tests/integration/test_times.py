"""Points in time where no OpenAPI document describes the answer: `--json` of the command line, tools of the Model Context
Protocol. What HTTP answers is held to the same form by test_openapi.py."""

import datetime
import json

import pytest

from conftest import Glovebox
from described import other_moments
from mcp_client import Stateless
from serving import Serving, state_of_its_own, with_policies

pytestmark = pytest.mark.usefixtures("python_template")


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("t"))
    state_of_its_own(glovebox)
    with Serving(glovebox, env=with_policies(glovebox, {"asked": "approval: {when: [always]}"})) as serving:
        yield serving


@pytest.fixture(name="said", scope="module")
def said_(service):
    """What each command prints with --json, by the command."""
    said = {}

    def say(*words, served=True):
        done = service.glovebox(*words, "--json", *(["--daemon", service.socket] if served else []))
        assert done.returncode == 0, (words, done.stderr)
        text = done.stdout.decode()
        try:
            said[" ".join(words)] = answer = [json.loads(text)]
        except json.JSONDecodeError:  # a line each
            said[" ".join(words)] = answer = [json.loads(line) for line in text.splitlines()]
        return answer[0]

    session = say("session", "create", "--policy", "data")["id"]
    say("session", "run", session, "-c", "open('a', 'w').write('1')")
    say("session", "files", session)
    say("session", "ps", session)
    say("session", "checkpoint", session)
    say("session", "checkpoints", session)
    say("session", "show", session)
    say("session", "list")
    assert service.glovebox("session", "kill", session, "--daemon", service.socket).returncode == 0
    say("session", "list", "--all")
    waits = service.run("1", policy="asked").json["approval"]
    say("approvals")
    say("approvals", waits)
    say("approve", waits)
    key = say("key", "create", "--name", "a", "--expires", "1h", served=False)
    say("key", "rotate", key["id"], "--grace", "1h", served=False)
    say("key", "revoke", key["id"], served=False)
    say("key", "list", served=False)
    say("template", "list", served=False)
    say("template", "show", "python", served=False)
    say("net", "rules")
    say("status")
    say("policy", "show", "data", served=False)
    say("limits", "report", served=False)
    say("libs", "python", served=False)
    say("log", "verify", served=False)
    say("config", "show", served=False)
    say("doctor", served=False)
    return said


def test_the_command_line_has_the_form_of_answers(said):
    assert {command: wrong for command, answer in said.items() if (wrong := other_moments(answer))} == {}


@pytest.mark.parametrize("command, fields", [
    ("session show", {"created_at", "expires_at", "idle_at"}), ("session files", {"modified_at"}), ("session checkpoints", {"created_at"}),
    ("session list --all", {"ended_at"}), ("approvals", {"asked_at", "expires_at"}), ("approve", {"decided_at", "until_at"}),
    ("key list", {"created_at", "expires_at", "revoked_at"}), ("template list", {"created_at"}), ("net rules", {"started_at"})])
def test_what_has_a_time_says_it(said, command, fields):
    def names(value):
        if isinstance(value, dict):
            return {key for key, each in value.items() if each is not None}.union(*map(names, value.values()))
        return set().union(*map(names, value)) if isinstance(value, list) else set()
    answer = next(answer for name, answer in said.items() if name.startswith(command))
    assert fields <= names(answer), answer


def test_a_moment_is_taken_where_a_length_is(service):
    """--expires, --until and --since take what an answer says, with another offset too."""
    key = service.key("--expires", "2036-11-22T04:30:00+01:30")
    assert key["expires_at"] == "2036-11-22T03:00:00.000Z"
    assert service.key("--expires", key["expires_at"])["expires_at"] == key["expires_at"]
    waits = service.run("2", policy="asked").json
    until = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    done = service.glovebox("approve", waits["approval"], "--until", until, "--json", "--daemon", service.socket)
    said = json.loads(done.stdout)["until_at"]
    assert abs(datetime.datetime.fromisoformat(said[:-1]) - datetime.datetime.fromisoformat(until[:-1])) <= datetime.timedelta(seconds=2)
    assert service.run("3").status == 200
    counts = {since: json.loads(service.glovebox("limits", "report", "--json", "--since", since).stdout)["runs"]
              for since in ("1h", "2026-01-01T00:00:00Z", until)}
    assert counts["1h"] == counts["2026-01-01T00:00:00Z"] > counts[until] == 0


def test_tools_have_the_form_of_answers(service):
    client = Stateless(service)
    opened = client.tool("session_open")["structuredContent"]
    written = client.tool("file_write", session_id=opened["id"], path="a", content="1")["structuredContent"]
    listed = client.tool("file_list", session_id=opened["id"])["structuredContent"]
    ran = client.tool("run_code", code="1", session_id=opened["id"])
    closed = client.tool("session_close", session_id=opened["id"])["structuredContent"]
    assert other_moments([opened, written, listed, ran, closed]) == []
    assert listed["entries"][0]["modified_at"] == written["modified_at"] and closed["ended"]["ended_at"] > opened["created_at"]

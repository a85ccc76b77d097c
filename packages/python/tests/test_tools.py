"""Tools for models: definitions and answers."""

import json
import shutil
import socket

import glovebox
import pytest
from conftest import BUILD, STATE, Server, folder_for_server
from glovebox.errors import InvalidArgumentException
from glovebox.modeltools import clipped


@pytest.fixture
def make(server, monkeypatch):
    monkeypatch.setenv("GLOVEBOX_PROGRAM", str(BUILD / "glovebox"))
    monkeypatch.setenv("GLOVEBOX_STATE", str(STATE))
    made = []

    def tools(**options):
        made.append(glovebox.tools(policy="minimal", socket=server.socket, **options))
        return made[-1]
    yield tools
    for each in made:
        each.close()


def test_definitions(make):
    for format, key in (("openai", "parameters"), ("anthropic", "input_schema"), ("gemini", "parameters")):
        rows = make(format=format)
        json.dumps(rows)
        definitions = [row["function"] if format == "openai" else row for row in rows]
        assert [row["name"] for row in definitions] == ["execute_python", "run_shell", "read_file", "write_file", "list_files"]
        for row in definitions:
            assert row["description"] and row[key]["type"] == "object" and set(row[key]["required"]) == set(row[key]["properties"])
        assert "memory" in definitions[0]["description"]


def test_a_task_over_several_calls(make):
    tools = make()
    assert tools.handler("write_file", {"path": "a.csv", "content": "x\n1\n2\n"}) == "/workspace/a.csv: 6 bytes"
    assert tools.handler("execute_python", '{"code": "rows = open(\'a.csv\').read().split(); len(rows)"}') == "3"
    assert tools.handler("execute_python", {"code": "print(rows[1])"}) == "1"
    assert "a.csv" in tools.handler("run_shell", {"command": "ls"})
    assert tools.handler("read_file", {"path": "a.csv"}) == "x\n1\n2\n"
    assert "a.csv" in tools.handler("list_files", {"path": "/workspace"})
    assert "ZeroDivisionError" in tools.handler("execute_python", {"code": "1 / 0"})
    assert tools.handler("run_shell", {"command": "false"}) == "the program ended with exit code 1"
    assert tools.handler("run_shell", {"command": "echo no >&2; (exit 4)"}) == "stderr:\nno\nthe program ended with exit code 4"
    assert tools.handler("run_shell", {"command": "exit 3"}).endswith(" (exit code 3)")
    assert tools.handler("list_files", {"path": "."}) == tools.handler("list_files", {"path": "/workspace/"}) == "/workspace/a.csv 6"


@pytest.mark.parametrize("name, arguments", [
    ("execute_python", "{"), ("execute_python", "[]"), ("execute_python", {}), ("execute_python", {"code": 5}), ("no_such", {}),
    ("execute_python", {"code": "1", "more": "2"}), ("read_file", {"path": "no/such"}), ("read_file", {"path": "../a"}),
    ("__init__", {}), ("execute_python", "[" * 100_000),
])
def test_a_mistake_of_the_model_is_an_answer(make, name, arguments):
    assert make().handler(name, arguments).startswith("error: ")


def test_answers_have_the_shape_of_their_interface(make):
    assert make(format="openai").answer({"id": "c1", "type": "function", "function": {
        "name": "execute_python", "arguments": '{"code": "6*7"}'}}) == {"role": "tool", "tool_call_id": "c1", "content": "42"}
    assert make(format="anthropic").answer({"type": "tool_use", "id": "t", "name": "execute_python", "input": {"code": "6*7"}}) \
        == {"type": "tool_result", "tool_use_id": "t", "content": "42", "is_error": False}
    assert make(format="gemini").answer({"name": "execute_python", "args": {"code": "6*7"}}) \
        == {"functionResponse": {"name": "execute_python", "response": {"output": "42"}}}


def test_what_is_not_there_is_refused():
    with pytest.raises(InvalidArgumentException, match="format"):
        glovebox.tools(format="other")
    with pytest.raises(InvalidArgumentException, match="no tool"):
        glovebox.tools(names=["other"])


@pytest.fixture(scope="module", name="remote")
def remote_():
    """A server that is known by its URL only."""
    folder = folder_for_server()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server(folder, "--listen", f"127.0.0.1:{port}")
    yield {"url": f"http://127.0.0.1:{port}", "api_key": server.key("--scope", "run,sessions")}
    server.stop()
    shutil.rmtree(folder)


def test_what_a_server_says_of_a_policy_is_what_the_program_says(make, remote, monkeypatch):
    here = {policy: glovebox.tools(policy) for policy in ("minimal", "data")}
    prompts = {policy: glovebox.prompt(policy) for policy in here}
    monkeypatch.setenv("GLOVEBOX_PROGRAM", "/nowhere/glovebox")
    for policy, expected in here.items():
        assert list(glovebox.tools(policy, **remote)) == list(expected)
        said = glovebox.prompt(policy, **remote)
        for line in ("Languages: ", "Installed: ", "Network: "):
            [text] = [each for each in said.splitlines() if each.startswith(line)]
            assert text in prompts[policy]
        assert f"policy {policy}" in said and "- wall_ms: " in said and "/workspace" in said
    with glovebox.tools("minimal", **remote) as tools:
        assert tools.handler("execute_python", {"code": "6 * 7"}) == "42"
    with pytest.raises(InvalidArgumentException, match="no policy 'other'; it has data"):
        glovebox.tools("other", **remote)


def test_prompt_and_clipping(make):
    assert "policy minimal" in glovebox.prompt("minimal")
    assert len(clipped("a" * 100_000)) < 21_000 and clipped("a") == "a"

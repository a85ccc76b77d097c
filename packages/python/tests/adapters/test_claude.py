"""Claude: the tools with both tool runners, and the agent toolset in a sandbox."""

import asyncio

import anthropic
import pytest
from anthropic.lib.tools import ToolError
from glovebox.adapters import claude
from scripted import Model
from tasks import SUM, TASKS, example, expect, options  # noqa: F401

REQUEST = {"model": "scripted", "max_tokens": 1000, "messages": [{"role": "user", "content": "Do the task."}]}


def results_of(model):
    """Contents of the tool results that the model was sent; the runner sends each once."""
    messages = [message for request in model.requests for message in request["messages"]]
    return [block["content"] for message in messages if isinstance(message["content"], list) for block in message["content"]]


@TASKS
def test_tools(task, options):  # noqa: F811
    def ask(steps, prepare=None, **more):
        with Model(steps) as model, claude.tools(**options, **more) as tools:
            if prepare:
                prepare(tools.sandbox)
            client = anthropic.Anthropic(base_url=model.root, api_key="none")
            last = client.beta.messages.tool_runner(tools=list(tools), **REQUEST).until_done()
            images = [part for result in results_of(model) for part in result if part["type"] == "image"]
            assert len(images) == len(tools.charts)
            return last.content[0].text, tools.charts
    task(ask)


@TASKS
def test_asynchronous_tools(task, options):  # noqa: F811
    def ask(steps, prepare=None, **more):
        async def run():
            client = anthropic.AsyncAnthropic(base_url=model.root, api_key="none")
            return await client.beta.messages.tool_runner(tools=list(tools), **REQUEST).until_done()
        with Model(steps) as model, claude.async_tools(**options, **more) as tools:
            if prepare:
                prepare(tools.sandbox)
            return asyncio.run(run()).content[0].text, tools.charts
    task(ask)


def test_toolset_with_a_runner(options):  # noqa: F811
    steps = [("write", {"file_path": "src/a.py", "content": "x = 1\nprint(x)\n"}),
             ("edit", {"file_path": "src/a.py", "old_string": "x = 1", "new_string": "x = 17"}),
             ("bash", {"command": "cd src; python3 a.py"}), ("bash", {"command": "pwd"}),
             ("glob", {"pattern": "**/*.py"}), ("grep", {"pattern": "x = [0-9]+"}),
             ("read", {"file_path": "src/a.py", "view_range": [2, -1]}), expect("print(x)", "The file has stayed.")]

    async def run():
        client = anthropic.AsyncAnthropic(base_url=model.root, api_key="none")
        return await client.beta.messages.tool_runner(tools=toolset.tools(), **REQUEST).until_done()
    with Model(steps) as model, claude.Toolset(**options) as toolset:
        assert asyncio.run(run()).content[0].text == "The file has stayed."
        assert results_of(model)[2:] == ["17", "/workspace/src", "src/a.py", "./src/a.py:1:x = 17", "print(x)\n"]


def test_toolset_of_a_worker(options):  # noqa: F811
    """A worker calls the factory for each session; what goes wrong is a ToolError, which the worker sends as a result."""
    with claude.Toolset(**options) as toolset:
        first, second = ({tool.name: tool for tool in toolset(None)} for _ in range(2))
        assert list(first) == ["bash", "read", "write", "edit", "glob", "grep"]
        assert all(tool.to_dict()["description"] for tool in first.values())

        async def tries():
            await first["write"].call({"file_path": "a", "content": "b b"})
            for name, arguments, text in [
                    ("edit", {"file_path": "a", "old_string": "b", "new_string": "c"}, "2 times"),
                    ("edit", {"file_path": "a", "old_string": "z", "new_string": "c"}, "not found"),
                    ("read", {"file_path": "none"}, "read: "), ("bash", {"command": "while :; do :; done", "timeout_ms": 1000}, "wall"),
                    ("bash", {"command": "echo out; false"}, "out"), ("grep", {"pattern": "("}, "grep"),
                    ("bash", {}, "command is required")]:
                with pytest.raises(ToolError, match=text):
                    await first[name].call(arguments)
            with pytest.raises(ToolError, match="read: "):
                await second["read"].call({"file_path": "a"})  # a sandbox of its own
            assert await first["glob"].call({"pattern": "*.none"}) == "no matches"
        asyncio.run(tries())


def test_example_of_the_docs(example):  # noqa: F811
    assert example("Claude", SUM) == "It is 42.\n"

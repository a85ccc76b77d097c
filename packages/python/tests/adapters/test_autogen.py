"""AutoGen: an agent whose code blocks run in a sandbox."""

import asyncio

import pytest
from autogen_agentchat.agents import AssistantAgent, CodeExecutorAgent
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.tools.code_execution import PythonCodeExecutionTool
from glovebox.adapters.autogen import Executor
from scripted import Model
from tasks import ANALYSIS, ENDLESS, PNG, example, expect, options, upload  # noqa: F401


def ask(executor, steps):
    async def run():
        client = OpenAIChatCompletionClient(model="gpt-4o", base_url=model.url, api_key="none")
        agent = AssistantAgent("analyst", client, tools=[PythonCodeExecutionTool(executor)], max_tool_iterations=len(steps))
        return (await agent.run(task="Do the task.")).messages[-1].content
    with Model(steps) as model:
        return asyncio.run(run())


def test_chart_of_an_uploaded_csv(options):  # noqa: F811
    with Executor(**options) as executor:
        upload(executor.sandbox)
        steps = [("CodeExecutor", {"code": ANALYSIS}), expect("total 60", "Sales were 60 in all.")]
        assert ask(executor, steps) == "Sales were 60 in all."
        assert len(executor.charts) == 1 and executor.charts[0].startswith(PNG)


def test_a_limit_is_reported(options):  # noqa: F811
    with Executor(timeout=1, **options) as executor:
        assert ask(executor, [("CodeExecutor", {"code": ENDLESS}), expect("wall", "It took too long.")]) == "It took too long."


def test_files_and_variables_stay(options):  # noqa: F811
    with Executor(**options) as executor:
        steps = [("CodeExecutor", {"code": "open('note.txt', 'w').write('kept'); x = 17"}),
                 ("CodeExecutor", {"code": "print(open('note.txt').read(), x)"}), expect("kept 17", "The file has stayed.")]
        assert ask(executor, steps) == "The file has stayed."


def test_code_executor_agent(options):  # noqa: F811
    async def run():
        agent = CodeExecutorAgent("runner", executor)
        text = "```python\nx = 2\n```\n```sh\necho shell\n```\n```python\nprint(x / 0)\n```\n```python\nprint('not reached')\n```"
        response = await agent.on_messages([TextMessage(content=text, source="user")], CancellationToken())
        await executor.restart()
        return response.chat_message.content, await executor.execute_code_blocks([CodeBlock("x", "python")], CancellationToken())
    with Executor(**options) as executor:
        text, after = asyncio.run(run())
        assert "shell" in text and "ZeroDivisionError" in text and "not reached" not in text
        assert after.exit_code == 1 and "NameError" in after.output


def test_cancelled_and_unknown_blocks(options):  # noqa: F811
    async def run():
        unknown = await executor.execute_code_blocks([CodeBlock("x", "cobol")], CancellationToken())
        assert unknown.exit_code == 2 and "error: " in unknown.output
        token = CancellationToken()
        asyncio.get_running_loop().call_later(0.2, token.cancel)
        with pytest.raises(asyncio.CancelledError):
            await executor.execute_code_blocks([CodeBlock("import time; time.sleep(60)", "python")], token)
        await executor.stop()
    with Executor(timeout=100, **options) as executor:
        asyncio.run(run())


def test_example_of_the_docs(example):  # noqa: F811
    assert example("AutoGen", [("CodeExecutor", {"code": "6 * 7"}), expect("42", "It is 42.")]) == "It is 42.\n"

"""AG2: an agent whose code tool runs in a sandbox."""

import asyncio

from ag2 import Agent
from ag2.config import OpenAIConfig
from ag2.tools import SandboxCodeTool
from glovebox.adapters.ag2 import Environment
from scripted import Model
from tasks import ANALYSIS, ENDLESS, PNG, example, expect, options, upload  # noqa: F401


def ask(environment, steps):
    async def run():
        agent = Agent("analyst", config=OpenAIConfig("scripted", base_url=model.url, api_key="none"),
                      tools=[SandboxCodeTool(environment)])
        return (await agent.ask("Do the task.")).body
    with Model(steps) as model:
        return asyncio.run(run())


def code(text, language="python"):
    return "run_code", {"code": text, "language": language}


def test_chart_of_an_uploaded_csv(options):  # noqa: F811
    with Environment(**options) as environment:
        upload(environment.sandbox)
        assert ask(environment, [code(ANALYSIS), expect("total 60", "Sales were 60 in all.")]) == "Sales were 60 in all."
        assert len(environment.charts) == 1 and environment.charts[0].startswith(PNG)


def test_a_limit_is_reported(options):  # noqa: F811
    with Environment(timeout=1, **options) as environment:
        assert ask(environment, [code(ENDLESS), expect("wall", "It took too long.")]) == "It took too long."


def test_files_and_variables_stay(options):  # noqa: F811
    with Environment(**options) as environment:
        steps = [code("open('note.txt', 'w').write('kept'); x = 17"), code("cat note.txt", "bash"),
                 expect("kept", code("print(x)")), expect("17", "The file has stayed.")]
        assert ask(environment, steps) == "The file has stayed."


def test_example_of_the_docs(example):  # noqa: F811
    assert example("AG2", [code("6 * 7"), expect("42", "It is 42.")]) == "It is 42.\n"

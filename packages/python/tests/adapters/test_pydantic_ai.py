"""PydanticAI: an agent with the toolset."""

from glovebox.adapters.pydantic_ai import Toolset
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from scripted import Model
from tasks import SUM, TASKS, example, options  # noqa: F401


@TASKS
def test_toolset(task, options):  # noqa: F811
    def ask(steps, prepare=None, **more):
        toolset = Toolset(**options, **more)
        try:
            with Model(steps) as model:
                if prepare:
                    prepare(toolset.sandbox)
                chat = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=model.url, api_key="none"))
                return Agent(chat, toolsets=[toolset]).run_sync("Do the task.").output, toolset.charts
        finally:
            toolset.close()
    task(ask)


def test_example_of_the_docs(example):  # noqa: F811
    assert example("PydanticAI", SUM) == "It is 42.\n"

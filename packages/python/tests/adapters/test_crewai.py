"""CrewAI: an agent with the tools."""

import os

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false")

from crewai import LLM, Agent  # noqa: E402
from glovebox.adapters import crewai  # noqa: E402
from scripted import Model  # noqa: E402
from tasks import SUM, TASKS, example, options  # noqa: E402, F401


@TASKS
def test_tools(task, options):  # noqa: F811
    def ask(steps, prepare=None, **more):
        with Model(steps) as model, crewai.tools(**options, **more) as tools:
            if prepare:
                prepare(tools.sandbox)
            llm = LLM("openai/gpt-4o", base_url=model.url, api_key="none")
            agent = Agent(role="analyst", goal="Answer.", backstory="None.", llm=llm, tools=list(tools))
            return agent.kickoff("Do the task.").raw, tools.charts
    task(ask)


def test_example_of_the_docs(example):  # noqa: F811
    assert "\nIt is 42.\n" in example("CrewAI", SUM)  # among its panels

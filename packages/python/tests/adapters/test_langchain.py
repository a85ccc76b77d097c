"""LangChain: an agent with the tools."""

from glovebox.adapters import langchain
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_openai import ChatOpenAI
from scripted import Model
from tasks import SUM, TASKS, example, options  # noqa: F401


@TASKS
def test_tools(task, options):  # noqa: F811
    def ask(steps, prepare=None, **more):
        with Model(steps) as model, langchain.tools(**options, **more) as tools:
            if prepare:
                prepare(tools.sandbox)
            agent = create_agent(ChatOpenAI(model="scripted", base_url=model.url, api_key="none"), list(tools))
            messages = agent.invoke({"messages": [("user", "Do the task.")]})["messages"]
            charts = [chart for message in messages if isinstance(message, ToolMessage) for chart in message.artifact]
            assert charts == tools.charts
            return messages[-1].content, charts
    task(ask)


def test_example_of_the_docs(example):  # noqa: F811
    assert example("LangChain", SUM) == "It is 42.\n"

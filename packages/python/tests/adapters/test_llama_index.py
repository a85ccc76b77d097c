"""LlamaIndex: an agent with the tools."""

import asyncio

from glovebox.adapters import llama_index
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from scripted import Model
from tasks import SUM, TASKS, example, options  # noqa: F401


@TASKS
def test_tools(task, options):  # noqa: F811
    def ask(steps, prepare=None, **more):
        async def run():
            llm = OpenAILike("scripted", api_base=model.url, api_key="none", is_chat_model=True, is_function_calling_model=True)
            return str(await FunctionAgent(tools=list(tools), llm=llm).run("Do the task."))
        with Model(steps) as model, llama_index.tools(**options, **more) as tools:
            if prepare:
                prepare(tools.sandbox)
            return asyncio.run(run()), tools.charts
    task(ask)


def test_example_of_the_docs(example):  # noqa: F811
    assert example("LlamaIndex", SUM) == "It is 42.\n"

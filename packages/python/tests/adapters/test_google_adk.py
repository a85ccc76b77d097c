"""Google ADK: an agent with the tools, and one whose code blocks run in a sandbox."""

import asyncio

from glovebox.adapters import google_adk
from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types
from scripted import Model
from tasks import ANALYSIS, ENDLESS, PNG, SUM, TASKS, example, expect, options, upload  # noqa: F401


def run(model, **agent):
    async def talk():
        llm = LiteLlm("openai/scripted", api_base=model.url, api_key="none")
        runner = InMemoryRunner(LlmAgent(name="analyst", model=llm, **agent), app_name="tests")
        session = await runner.session_service.create_session(app_name="tests", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="Do the task.")])
        return [event async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message)]
    events = asyncio.run(talk())
    return [part.text for event in events for part in event.content.parts if event.content and part.text][-1]


@TASKS
def test_tools(task, options):  # noqa: F811
    def ask(steps, prepare=None, **more):
        with Model(steps) as model, google_adk.tools(**options, **more) as tools:
            if prepare:
                prepare(tools.sandbox)
            return run(model, tools=list(tools)), tools.charts
    task(ask)


def block(code):
    return f"```python\n{code}\n```"


def test_code_executor(options):  # noqa: F811
    executor = google_adk.CodeExecutor(**options)
    try:
        upload(executor.sandbox)
        steps = [block("x = 17; open('note.txt', 'w').write('kept')"), block("print(open('note.txt').read(), x)"),
                 expect("kept 17", "The file has stayed.")]
        with Model(steps) as model:
            assert run(model, code_executor=executor) == "The file has stayed."
        executor.timeout_seconds = 1
        with Model([block(ENDLESS), expect("wall", "It took too long.")]) as model:
            assert run(model, code_executor=executor) == "It took too long."
        executor.timeout_seconds = 60
        with Model([block(ANALYSIS), expect("total 60", "Sales were 60 in all.")]) as model:
            assert run(model, code_executor=executor) == "Sales were 60 in all."
        assert len(executor.charts) == 1 and executor.charts[0].startswith(PNG)
    finally:
        executor.close()


def test_example_of_the_docs(example):  # noqa: F811
    assert example("Google ADK", SUM) == "It is 42.\n"

"""OpenAI Agents SDK."""

import agents
import openai
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, ShellTool
from glovebox.adapters import openai_agents
from scripted import Model
from tasks import SUM, TASKS, example, expect, options  # noqa: F401

agents.set_tracing_disabled(True)


def run(model_class, model, tools):
    client = openai.AsyncOpenAI(base_url=model.url, api_key="none")
    agent = Agent(name="analyst", tools=list(tools), model=model_class("scripted", client))
    return Runner.run_sync(agent, "Do the task.").final_output


@TASKS
def test_function_tools(task, options):  # noqa: F811
    def ask(steps, prepare=None, **more):
        with Model(steps) as model, openai_agents.tools(**options, **more) as tools:
            if prepare:
                prepare(tools.sandbox)
            return run(OpenAIChatCompletionsModel, model, tools), tools.charts
    task(ask)


def test_shell_keeps_files_and_says_its_timeout(options):  # noqa: F811
    steps = [("shell", {"commands": ["echo kept > note.txt", "exit 3"], "timeout_ms": None, "max_output_length": None}),
             ("shell", {"commands": ["cat note.txt", "sleep 60", "echo not reached"], "timeout_ms": 5000, "max_output_length": None}),
             expect("kept", "The file has stayed.")]
    with Model(steps) as model, openai_agents.ShellExecutor(**options) as executor:
        assert run(OpenAIResponsesModel, model, [ShellTool(executor=executor)]) == "The file has stayed."
        outputs = [row for row in model.requests[-1]["input"] if row.get("type") == "shell_call_output"]
        outcomes = [[each["outcome"] for each in row["output"]] for row in outputs]
        assert outcomes == [[{"type": "exit", "exit_code": 0}, {"type": "exit", "exit_code": 3}],
                            [{"type": "exit", "exit_code": 0}, {"type": "timeout"}]]


def test_example_of_the_docs(example):  # noqa: F811
    assert example("OpenAI Agents SDK", SUM) == "It is 42.\n"

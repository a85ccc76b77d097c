"""smolagents: CodeAgent, whose code runs in a sandbox."""

import pytest
from glovebox.adapters.smolagents import Executor
from scripted import Model
from smolagents import CodeAgent, OpenAIServerModel, tool
from tasks import ANALYSIS, CSV, PNG, example, options  # noqa: F401


@tool
def shout(text: str) -> str:
    """Writes a text in capitals.

    Args:
        text: The text.
    """
    return text.upper()


def code(text):
    return f"Thought: the next step.\n<code>\n{text}\n</code>"


def ask(executor, *cells, tools=(), files=None):
    with Model([code(cell) for cell in cells]) as model:
        agent = CodeAgent(list(tools), OpenAIServerModel("scripted", api_base=model.url, api_key="none"), executor=executor,
                          max_steps=len(cells), verbosity_level=0)
        return agent.run("Do the task."), model.requests


def test_chart_of_an_uploaded_csv(options):  # noqa: F811
    with Executor(**options) as executor:
        executor.sandbox.files.write("sales.csv", CSV)
        answer, _ = ask(executor, ANALYSIS, "final_answer({'total': int(rows.sales.sum()), 'months': list(rows.month)})")
        assert answer == {"total": 60, "months": ["Jan", "Feb", "Mar"]}
        assert len(executor.charts) == 1 and executor.charts[0].startswith(PNG)


def test_a_limit_is_reported(options):  # noqa: F811
    with Executor(timeout=5, **options) as executor:
        answer, requests = ask(executor, "while True: pass", "final_answer('it was stopped')")
        assert answer == "it was stopped" and "wall" in str(requests[-1]["messages"])


def test_files_variables_and_tools_stay(options):  # noqa: F811
    with Executor(**options) as executor:
        answer, requests = ask(executor, "open('note.txt', 'w').write(shout('kept')); x = 17", "print(1 / 0)",
                               "final_answer(f\"{open('note.txt').read()} {x}\")", tools=[shout])
        assert answer == "KEPT 17" and "ZeroDivisionError" in str(requests[-1]["messages"])


def test_answers_that_code_inside_has_written(options):  # noqa: F811
    with Executor(**options) as executor:
        executor.send_variables({"name": "a'b\\", "numbers": [1, 2.5, None]})
        executor.send_tools({"final_answer": None})
        assert executor("name, numbers").output == "(\"a'b\\\\\", [1, 2.5, None])"
        long = executor("final_answer('é' * 300_000)")
        assert long.is_final_answer and long.output == "é" * 300_000
        assert executor("final_answer({1, 2})").output == "{1, 2}"
        for text in ("[" * 100_000, "no json", ""):
            with pytest.raises(RuntimeError, match="final answer cannot be read"):
                executor(f"open('/tmp/.glovebox-final-answer.json', 'w').write({text!r}); raise _GloveboxFinalAnswer")


def test_example_of_the_docs(example):  # noqa: F811
    assert example("smolagents", [code("final_answer(6 * 7)")]) == "42\n"

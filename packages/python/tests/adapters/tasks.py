"""The three tasks that every adapter does: a chart of an uploaded CSV, a limit that is met and said, a file that stays.

Each function takes `ask(steps, prepare=None, **options)` of a framework's test: it has the framework work through the steps
of a scripted model in a sandbox with these options, with prepare(sandbox) done before, and gives (final text, charts)."""

import os

import pytest
from conftest import BUILD, STATE, TOP
from scripted import Model

CSV = "month,sales\nJan,10\nFeb,20\nMar,30\n"
ANALYSIS = """import pandas as pd, matplotlib.pyplot as plt
rows = pd.read_csv("sales.csv")
rows.plot.bar(x="month", y="sales")
plt.show()
print("total", rows.sales.sum())
"""
ENDLESS = "while True: pass"
LIMIT = {"wall_ms": 1000}  # of one cell
PNG = b"\x89PNG\r\n\x1a\n"


def upload(sandbox):
    sandbox.files.write("sales.csv", CSV)


def expect(wanted, then):
    """A step that says `then` when the tool results have `wanted`."""
    def step(results):
        return then if wanted in results else f"the tool results are: {results[-1000:]}"
    return step


def say_limit(results):
    return "it was stopped: " + next((word for word in ("wall", "time") if word in results), f"nothing said: {results[-1000:]}")


def chart(ask):
    text, charts = ask([("execute_python", {"code": ANALYSIS}), expect("total 60", "Sales were 60 in all.")], upload)
    assert text == "Sales were 60 in all." and len(charts) == 1 and charts[0].startswith(PNG)


def limit(ask):
    text, _ = ask([("execute_python", {"code": ENDLESS}), say_limit], limits=LIMIT)
    assert text.startswith("it was stopped: ") and "nothing said" not in text, text


def file(ask):
    text, _ = ask([("write_file", {"path": "note.txt", "content": "kept 17"}),
                   ("run_shell", {"command": "cat note.txt"}), expect("kept 17", "The file has stayed.")])
    assert text == "The file has stayed."


TASKS = pytest.mark.parametrize("task", [chart, limit, file], ids=lambda task: task.__name__)


@pytest.fixture
def options(server, monkeypatch):
    """Where the sandbox is made, for every adapter; the program tells the tools what the policy says."""
    monkeypatch.setenv("GLOVEBOX_PROGRAM", os.fspath(BUILD / "glovebox"))
    monkeypatch.setenv("GLOVEBOX_STATE", os.fspath(STATE))
    return {"socket": server.socket, "template": "python"}


@pytest.fixture
def example(options, server, monkeypatch, tmp_path, capsys):
    """Runs the example below a heading of docs/adapters.md as it stands, with a scripted model; gives what it prints."""
    def run(heading, steps):
        text = (TOP / "docs/adapters.md").read_text().split(f"\n## {heading}\n")[1]
        code = text.split("```python\n")[1].split("```")[0]
        monkeypatch.chdir(tmp_path)
        with Model(steps) as model:
            for name, value in (("GLOVEBOX_SOCKET", server.socket), ("OPENAI_BASE_URL", model.url), ("OPENAI_API_KEY", "none"),
                                ("OPENAI_API_BASE", model.url), ("ANTHROPIC_BASE_URL", model.root),
                                ("ANTHROPIC_API_KEY", "none")):
                monkeypatch.setenv(name, value)
            exec(compile(code, heading, "exec"), {"__name__": "example"})
        return capsys.readouterr().out
    return run


SUM = [("execute_python", {"code": "6 * 7"}), expect("42", "It is 42.")]

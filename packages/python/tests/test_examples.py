"""The example agents, each as a program, with a scripted model; and with a real one where GLOVEBOX_MODEL_URL gives its base
URL (an OpenAI-like interface), with GLOVEBOX_MODEL_KEY and GLOVEBOX_MODEL."""

import os
import subprocess
import sys

import pytest
from conftest import BUILD, STATE, TOP
from scripted import Model

FOLDER = TOP / "packages/python/examples"
REAL = os.environ.get("GLOVEBOX_MODEL_URL")
KINDS = ["scripted", *(["real"] if REAL else [])]

ANALYSIS = """import pandas as pd, matplotlib.pyplot as plt
rows = pd.read_csv("sales.csv")
rows.plot.bar(x="month", y="sales")
print("sum", rows.sales.sum())"""


@pytest.fixture(params=KINDS)
def run(request, server, tmp_path):
    """Runs an example with the steps of a scripted model, or with a real one, and gives what it prints."""
    def run(name, steps, *arguments):
        environment = {**os.environ, "GLOVEBOX_SOCKET": server.socket, "GLOVEBOX_PROGRAM": str(BUILD / "glovebox"),
                       "GLOVEBOX_STATE": str(STATE), "OPENAI_API_KEY": os.environ.get("GLOVEBOX_MODEL_KEY", "none"),
                       "OPENAI_MODEL": os.environ.get("GLOVEBOX_MODEL", "scripted")}
        with Model(steps) as model:
            environment["OPENAI_BASE_URL"] = model.url if request.param == "scripted" else REAL
            done = subprocess.run([sys.executable, FOLDER / f"{name}.py", *arguments], env=environment, cwd=tmp_path,
                                  capture_output=True, text=True, timeout=600, check=False)
            assert done.returncode == 0, done.stderr
            assert request.param == "real" or not model.steps, "the model was not asked for its last steps"
        return done.stdout, done.stderr
    return run


def said(*words, then, without="no such word"):
    """A step that says `then`; it gives no answer unless the tool results have all the words, and not that of `without`."""
    def step(results):
        assert all(word in results for word in words) and without not in results, results
        return then
    return step


def test_data_analysis(run, tmp_path):
    (tmp_path / "sales.csv").write_text("month,sales\nJan,10\nFeb,20\nMar,30\n")
    out, _ = run("data_analysis", [("execute_python", {"code": ANALYSIS}), said("sum 60", then="Sales were 60 in all.")],
                 "sales.csv", "What is the sum of sales? Draw a bar chart of sales by month.")
    assert "60" in out and "chart-1.png" in out
    assert (tmp_path / "chart-1.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_mathematics(run):
    steps = [("execute_python", {"code": "while True: pass"}),
             said("limit", "wall", then=("execute_python", {"code": "import sympy; sympy.prime(1000)"})),
             said("7919", then="The thousandth prime is 7919.")]
    out, err = run("mathematics", steps, "What is the thousandth prime number?")
    assert "7919" in out and "computations" in err


def test_code_review(run, tmp_path):
    project = tmp_path / "project"
    (project / "tests").mkdir(parents=True)
    (project / "mean.py").write_text("def mean(values):\n    return sum(values) / (len(values) - 1)\n")
    (project / "tests/__init__.py").write_text("")
    (project / "tests/test_mean.py").write_text("import unittest\nfrom mean import mean\n\nclass MeanTest(unittest.TestCase):\n"
                                                "    def test_mean(self):\n        self.assertEqual(mean([1, 2, 3]), 2)\n")
    (project / ".env").write_text("KEY=secret\n")
    steps = [("run_shell", {"command": "cd project; ls -A; cat mean.py; python3 -m unittest"}),
             said("AssertionError", "len(values) - 1", then=("run_shell", {"command": "ls -A /workspace/project"})),
             said("mean.py", without=".env", then="mean.py, line 2: the divisor is one too small; it fails.")]
    out, err = run("code_review", steps, str(project))
    assert "mean" in out and "programs were run" in err


@pytest.mark.parametrize("name, arguments, says", [
    ("data_analysis", [], "data_analysis.py FILE.csv QUESTION"), ("data_analysis", ["none.csv", "?"], "none.csv is no file\n"),
    ("mathematics", [], "mathematics.py QUESTION"),
    ("code_review", [], "code_review.py FOLDER"), ("code_review", ["none"], "none is no folder\n")])
def test_wrong_arguments(tmp_path, name, arguments, says):
    done = subprocess.run([sys.executable, FOLDER / f"{name}.py", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "") and says in done.stderr and "Traceback" not in done.stderr

"""Inspect: an evaluation whose tools run in a sandbox of glovebox."""

import asyncio

import pytest
from glovebox.adapters.inspect_ai import Environment, Options
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import bash, python
from inspect_ai.util import OutputLimitExceededError, SandboxEnvironmentSpec
from inspect_ai.util._sandbox import limits
from inspect_ai.util._sandbox.environment import SandboxUserUnsupportedError
from scripted import Model
from tasks import ANALYSIS, CSV, PNG, example, expect, options  # noqa: F401


def ask(options, steps, tmp_path, target, files=None, timeout=None):  # noqa: F811
    with Model(steps) as model:
        task = Task([Sample("Do the task.", target=target, files=files)], scorer=includes(),
                    solver=[use_tools(bash(timeout), python(timeout)), generate()], sandbox=SandboxEnvironmentSpec("glovebox", Options(**options)))
        llm = get_model("openai-api/scripted/model", base_url=model.url, api_key="none", memoize=False)
        [log] = eval(task, model=llm, log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    return log.results.scores[0].metrics["accuracy"].value


def test_chart_of_a_file_of_the_sample(options, tmp_path):  # noqa: F811
    code = ANALYSIS.replace("plt.show()", "plt.savefig('chart.png')")
    steps = [("python", {"code": "import os; os.environ['MPLBACKEND'] = 'agg'\n" + code}),
             expect("total 60", ("bash", {"command": "head -c 4 chart.png | tail -c 3"})), expect("PNG", "Sales were 60 in all.")]
    assert ask(options, steps, tmp_path, "60 in all", {"sales.csv": CSV}) == 1


def test_a_limit_is_reported(options, tmp_path):  # noqa: F811
    steps = [("bash", {"command": "while :; do :; done"}), expect("timed out", "It took too long.")]
    assert ask(options, steps, tmp_path, "too long", timeout=1) == 1


def test_files_stay(options, tmp_path):  # noqa: F811
    steps = [("bash", {"command": "echo kept > note.txt"}), ("python", {"code": "print(open('note.txt').read())"}),
             expect("kept", "The file has stayed.")]
    assert ask(options, steps, tmp_path, "has stayed") == 1


def test_what_an_environment_must_raise(options):  # noqa: F811
    async def tries():
        await environment.write_file("a/b.txt", "é")
        assert await environment.read_file("a/b.txt") == "é" and await environment.read_file("/workspace/a/b.txt", False) == b"\xc3\xa9"
        for file, kind in (("none", FileNotFoundError), ("a", IsADirectoryError)):
            with pytest.raises(kind):
                await environment.read_file(file)
        for file, kind in (("a", IsADirectoryError), ("/usr/x", PermissionError)):
            with pytest.raises(kind):
                await environment.write_file(file, "x")
        await environment.write_file("bin", b"\xff")
        with pytest.raises(UnicodeDecodeError):
            await environment.read_file("bin")
        done = await environment.exec(["sh", "-c", "cat; echo $A; pwd; exit 3"], input="in\n", cwd="a", env={"A": "b"})
        assert (done.success, done.returncode, done.stdout) == (False, 3, "in\nb\n/workspace/a\n")
        assert (await environment.exec(["no-such-program"])).returncode == 127
        with pytest.raises(TimeoutError):
            await environment.exec(["sleep", "20"], timeout=1)
        with pytest.raises(SandboxUserUnsupportedError):
            await environment.exec(["id"], user="root")
        limits._max_exec_output_size_var.set(10)
        limits._max_read_file_size_var.set(1)
        with pytest.raises(OutputLimitExceededError):
            await environment.exec(["echo", "more than ten bytes"])
        with pytest.raises(OutputLimitExceededError):
            await environment.read_file("a/b.txt")
    with Environment(Options(**options)) as environment:
        asyncio.run(tries())


def test_example_of_the_docs(example):  # noqa: F811
    assert example("Inspect", [("bash", {"command": "echo $((6 * 7))"}), expect("42", "It is 42.")]) == "1.0\n"

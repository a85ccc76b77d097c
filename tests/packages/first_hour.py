"""What an ordinary user does with the wheel in /packages, and how long it takes: tests/packages/try_wheel calls this in a
clean root, with the Python of that release and without a network."""

import contextlib
import glob
import os
import pathlib
import signal
import subprocess
import sys
import time

HOME = pathlib.Path.home()
WHEEL = glob.glob("/packages/*.whl")[0]
PRINT = "import glovebox; print(glovebox.run('print(6 * 7)').stdout, end='')"
CHART = """
from glovebox import Sandbox
with Sandbox({}) as sandbox:
    chart = sandbox.run_code("import pandas as pd; pd.DataFrame({{'x': [1, 4, 9]}}).plot()")
    assert chart.error is None and chart.limit is None, chart
    next(each for each in chart.results if each.png).save("chart.png")
"""
ONE_OF_TEN = """
import glovebox.server, signal, sys
glovebox.server.IDLE_SECONDS = 3
sandbox = glovebox.Sandbox(idle_timeout=5)
print(sandbox.run_code("6 * 7", timeout=10).text, flush=True)
signal.pause()
"""
failed = []


def said_by(*command, **options):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"not ok - {' '.join(map(str, command))[:200]}\n{done.stdout}")
    return done.stdout


def install(python, *what):
    said_by(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links",
            "/packages/wheels", *what)


def new_home(name):
    """A folder with a fresh environment, and variables of a user who has never used glovebox."""
    folder = HOME / name
    (folder / "run").mkdir(parents=True, mode=0o700)
    said_by(sys.executable, "-m", "venv", folder / "venv")
    return folder, {**os.environ, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run")}


def used_by_children():
    times = os.times()
    return times.children_user + times.children_system


@contextlib.contextmanager
def timed(what, limit):
    began, used = time.monotonic(), used_by_children()
    yield
    took, used = time.monotonic() - began, used_by_children() - used
    print(f"{'ok' if took <= limit else 'not ok'} - {what}: {took:.1f} s (at most {limit}), of which {used:.1f} s of processor "
          "time, but for the server's", flush=True)
    failed.append(took > limit)


def running_from(folder):
    found = {}
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            program = pathlib.Path(os.readlink(place / "exe"))
            if "_programs" in program.parts and folder in program.parents:
                found[int(place.name)] = program.name
    return found


def first_print():
    folder, variables = new_home("first")
    python = folder / "venv/bin/python"
    with timed("pip install to the first print", 15):
        install(python, WHEEL)
        assert said_by(python, "-c", PRINT, env=variables) == "42\n"


def imported_template():
    folder, variables = new_home("imported")
    python = folder / "venv/bin/python"
    with timed("pip install to a chart of pandas, with a template from a file", 60):
        install(python, WHEEL)
        said_by(python, "-m", "glovebox", "template", "import", "/packages/python.tar.gz", env=variables)
        said_by(python, "-c", CHART.format("policy='data'"), env=variables, cwd=folder)
    assert (folder / "chart.png").read_bytes().startswith(b"\x89PNG")


def this_environment():
    folder, variables = new_home("own")
    python = folder / "venv/bin/python"
    install(python, "pandas", "matplotlib")
    with timed("pip install to a chart of pandas, with this-environment", 30):
        install(python, WHEEL)
        said_by(python, "-c", CHART.format("template='this-environment'"), env=variables, cwd=folder)
    assert (folder / "chart.png").read_bytes().startswith(b"\x89PNG")


def ten_at_once():
    folder, variables = new_home("ten")
    python = folder / "venv/bin/python"
    install(python, WHEEL)
    programs = [subprocess.Popen([python, "-c", ONE_OF_TEN], env=variables, stdout=subprocess.PIPE, text=True)
                for _ in range(10)]
    assert [program.stdout.readline() for program in programs] == ["42\n"] * 10
    found = sorted(running_from(folder).values())
    assert found.count("glovebox-spawner") == 1, found  # each server has one
    for program in programs:
        program.send_signal(signal.SIGKILL)
        program.wait()
    end = time.monotonic() + 60
    while running_from(folder):
        assert time.monotonic() < end, running_from(folder)
        time.sleep(0.1)
    left = sorted(path.name for path in (folder / "run/glovebox-private").iterdir())
    assert left in (["lock", "log"], ["lock", "log", "socket"]), left
    print("ok - ten programs at once share a server; killed, they leave nothing that runs", flush=True)


for step in (first_print, ten_at_once, imported_template, this_environment):
    try:
        step()
    except (Exception, SystemExit) as cause:
        print(f"not ok - {step.__name__}: {cause!r}", flush=True)
        failed.append(True)
sys.exit(any(failed))

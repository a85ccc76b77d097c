"""What every integration test shares: the program `glovebox` of the build under test.

GLOVEBOX_BUILD names the build folder (default: build/), GLOVEBOX_STATE the folder with built templates
(default: state/ in there). Tests run it as a person would: arguments, pipes, exit statuses."""

import json
import os
import pathlib
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GLOVEBOX_BUILD", TOP / "build")).resolve()
STATE = pathlib.Path(os.environ.get("GLOVEBOX_STATE", BUILD / "state")).resolve()


class Glovebox:
    """Calls the program; every call is private unless a test says otherwise."""

    def __init__(self, folder):
        self.folder = folder
        self.program = str(BUILD / "glovebox")
        self.state = STATE

    def environment(self, more=None):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GLOVEBOX_")}
        return kept | {"GLOVEBOX_STATE": str(self.state)} | (more or {})

    def __call__(self, *arguments, stdin=None, env=None, timeout=60, cwd=None):
        return subprocess.run([self.program, *map(str, arguments)], input=stdin, env=self.environment(env),
                              stdin=None if stdin is not None else subprocess.DEVNULL,
                              capture_output=True, timeout=timeout, cwd=cwd or self.folder, check=False)

    def start(self, *arguments, env=None, **how):
        return subprocess.Popen([self.program, *map(str, arguments)], env=self.environment(env),
                                cwd=self.folder, **how)

    def run(self, *arguments, **how):
        return self("run", "--private", *arguments, **how)

    def result(self, *arguments, **how):
        """The result contract of one run."""
        done = self.run("--json", *arguments, **how)
        return json.loads(done.stdout)


@pytest.fixture
def glovebox(tmp_path):
    return Glovebox(tmp_path)


@pytest.fixture
def python_template():
    """For tests that run code: the template must be there, a test without it proves nothing."""
    assert (STATE / "templates" / "python" / "manifest.json").exists() or (
        STATE / "templates" / "minimal" / "manifest.json").exists(), \
        f"no template in {STATE}: run glovebox template build minimal"

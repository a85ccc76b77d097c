"""What every integration test shares: the program `glovebox` of the build under test.

GLOVEBOX_BUILD names the build folder (default: build/), GLOVEBOX_STATE the folder with built templates
(default: state/ in there). Tests run it as a person would: arguments, pipes, exit statuses."""

import json
import os
import pathlib
import subprocess

import pytest
import session_rig
import zygote_rig

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
        wanted = {"GLOVEBOX_STATE": str(self.state)} | (more or {})
        return kept | {name: value for name, value in wanted.items() if value is not None}

    def __call__(self, *arguments, stdin=None, env=None, timeout=60, cwd=None):
        return subprocess.run([self.program, *map(str, arguments)], input=stdin, env=self.environment(env),
                              stdin=None if stdin is not None else subprocess.DEVNULL,
                              capture_output=True, timeout=timeout, cwd=cwd or self.folder, check=False)

    def start(self, *arguments, env=None, **how):
        """A daemon of a test loads an interpreter when code asks for it, and keeps as many parked as are asked for: to
        load pandas ahead in each of the suite's daemons would take half of its time. `env={"GLOVEBOX_POOL_MIN": None}`:
        as it is by default. Nor does it read all files of all templates, which is a gigabyte or two."""
        if arguments[0] == "serve":
            env = {"GLOVEBOX_POOL_MIN": "0", "GLOVEBOX_MEASURE_TEMPLATES": "false"} | (env or {})
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


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """A service of its own for each file of tests that asks for one."""
    folder = tmp_path_factory.mktemp("d")
    started = session_rig.Daemon(Glovebox(folder), folder)
    yield started
    started.stop()


def zygote_of(template, modules):
    """A zygote of a template with a stand-in for init, without a daemon; to be closed."""
    root = STATE / "templates" / template / "root"
    if not (root / "usr/bin/python3").exists():
        pytest.skip(f"template {template} is not built")
    compiled = BUILD / "seccomp" / "default.bpf"
    rig = zygote_rig.Rig(str(root), str(BUILD / "python"), modules,
                         compiled.read_bytes() if compiled.exists() else zygote_rig.ALLOW_ALL)
    assert rig.failure is None, rig.failure
    return rig


@pytest.fixture(scope="module")
def light():
    """A zygote that has imported nothing more than Python does."""
    rig = zygote_of("minimal", [])
    yield rig
    rig.close()


@pytest.fixture(scope="module")
def data():
    """A zygote that has imported what most analyses need."""
    rig = zygote_of("python", ["numpy", "pandas", "matplotlib.pyplot"])
    yield rig
    rig.close()

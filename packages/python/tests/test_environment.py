"""Sandbox(template="this-environment"): the interpreter and packages of the calling program are inside, and no other
file of its home; what could be a secret is left out; a second start copies nothing."""

import contextlib
import importlib.util
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time

import pytest
from glovebox import environment

from conftest import BUILD, STATE, TOP, folder_for_server

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("ldd"),
                                reason="an environment is copied on x86-64 with the GNU C library")
MARKER = "only the caller may read this 4711"
SECRETS = [".env", ".env.local", "production.env", ".netrc", ".pypirc", ".git", ".ssh", ".aws", "id_rsa", "id_ed25519",
           "server.key", "keys.p12", "store.jks", "credentials", "credentials.json", "secrets.yaml", "secret.toml"]
FOR_LINKERS = ["libpython3.11.a", "module.la"]
NO_SECRETS = ["credentials.py", "secrets.py", "key.py", "keys.py", "env.py", "cacert.pem", "id_map.py", "environment.json",
              "py.typed", "data.csv", "a", "la"]


class World:
    """A home folder with files of its own, and an environment in it."""

    def __init__(self, folder):
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        (folder / "state").mkdir()
        (folder / "state/templates").symlink_to(STATE / "templates")
        self.venv = self.home / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.venv], check=True)
        [self.site] = (self.venv / "lib").glob("python3*/site-packages")
        (self.home / "notes.txt").write_text(MARKER)
        self.add("greeting", "def greet():\n    return 'hello'\n")

    def add(self, name, text):
        (self.site / name).mkdir()
        (self.site / name / "__init__.py").write_text(text)
        (self.site / f"{name}-1.0.dist-info").mkdir()
        (self.site / f"{name}-1.0.dist-info/METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")

    def python(self, code, *arguments):
        names = {name: value for name, value in os.environ.items() if not name.startswith("GLOVEBOX_")}
        done = subprocess.run([self.venv / "bin/python", "-c", code, *arguments], check=False, timeout=300, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, cwd=self.folder, env={
                                  **names, "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.folder),
                                  "GLOVEBOX_STATE": str(self.folder / "state"), "GLOVEBOX_PROGRAM": str(BUILD / "glovebox"),
                                  "PYTHONPATH": str(TOP / "packages/python/src")})
        assert done.returncode == 0, done
        return done.stdout

    def inside(self, code):
        return self.python("import sys\nfrom glovebox import run\nresult = run(sys.argv[1], template='this-environment')\n"
                           "print(''.join(result.logs.stdout), result.error or '', sep='', end='')", code)

    def copies(self):
        found = {}
        for place in (self.folder / "state/environments").glob("*/templates/this-environment"):
            found[place.parent.parent.name] = (place.stat().st_ino, json.loads((place / "manifest.json").read_text()))
        return found

    def end(self):
        for place in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (place / "cmdline").read_bytes().split(b"\0")
                if words[1:3] == [b"serve", b"--socket"] and words[3].startswith(f"{self.folder}/".encode()):
                    os.kill(int(place.name), signal.SIGTERM)
                    while place.exists() and place.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z":
                        time.sleep(0.05)


@pytest.fixture(scope="module")
def world():
    folder = pathlib.Path(folder_for_server())
    world = World(folder)
    for name in SECRETS:
        (world.site / "greeting" / name).write_text(MARKER)
    (world.site / "greeting/id.pem").write_text("-----BEGIN RSA PRIVATE KEY-----\n" + MARKER)
    (world.site / "greeting/deploy").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n" + MARKER)
    (world.site / "greeting/linked.txt").symlink_to(world.home / "notes.txt")
    (world.site / "greeting/home").symlink_to(world.home)
    (world.site / "linked_package").symlink_to(world.home / "project")
    (world.home / "project").mkdir()
    (world.home / "project/__init__.py").write_text(f"TEXT = {MARKER!r}\n")
    (world.home / "project/developed.py").write_text(f"TEXT = {MARKER!r}\n")
    (world.site / "__editable__.developed.pth").write_text(f"{world.home}/project\n")
    (world.site / "evil.pth").write_text("import os; os.environ['PTH'] = 'ran'\n")
    (world.site / "greeting-1.0.dist-info/direct_url.json").write_text(json.dumps({"url": f"file://{world.home}/project"}))
    yield world
    world.end()
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", SECRETS)
def test_what_could_be_a_secret_has_a_cause_to_be_left_out(name):
    assert environment.cause_to_leave_out(name) == "could be a secret"


@pytest.mark.parametrize("name", FOR_LINKERS)
def test_what_only_linkers_read_is_left_out(name):
    assert environment.cause_to_leave_out(name) == "for linkers only"


@pytest.mark.parametrize("name", NO_SECRETS)
def test_ordinary_names_stay(name):
    assert environment.cause_to_leave_out(name) is None


def test_its_packages_and_its_interpreter_are_inside(world):
    version = ".".join(map(str, sys.version_info[:3]))
    said = world.inside("import greeting, platform, ssl, sqlite3, ctypes, zlib, lzma, bz2\n"
                        "print(greeting.greet(), platform.python_version())")
    assert said == f"hello {version}\n"
    [(_, manifest)] = world.copies().values()
    assert {"name": "greeting", "version": "1.0"} in manifest["python"]


def test_a_module_that_is_missing_belongs_into_that_environment(world):
    assert world.python("from glovebox import run\nprint(run('import torch', template='this-environment').error.traceback"
                        ".splitlines()[-1])") == ("glovebox: this template has no torch; it is a copy of your program's "
                                                  "environment, made anew after: pip install torch\n")


def test_the_policy_is_the_one_for_data(world):
    assert world.python("from glovebox import run\nraw = run('1', template='this-environment').raw\n"
                        "print(raw['policy']['name'], raw['template']['name'])") == "data this-environment\n"


def test_no_file_of_the_home_outside_the_environment_is_inside(world):
    said = world.inside(f"""
import os, sys
texts = []
for where, folders, files in os.walk("/"):
    if where in ("/proc", "/sys", "/dev"):
        folders[:] = []
        continue
    for name in files:
        try:
            with open(os.path.join(where, name), "rb") as file:
                if {MARKER[:-4]!r}.encode() + b"4711" in file.read():
                    texts.append(os.path.join(where, name))
        except OSError:
            pass
for path in [{str(world.home)!r}, {str(world.home / "notes.txt")!r}, {str(world.venv)!r}]:
    texts += [path] if os.path.lexists(path) else []
for name in ["developed", "linked_package", "project"]:
    try:
        __import__(name)
        texts.append(name)
    except ImportError:
        pass
home = {str(world.home)!r}
print(texts, [path for path in sys.path if path.startswith(home)], os.environ.get("PTH"))
""")
    # The program itself holds the text in its own pieces only, so that it does not find itself.
    assert said == "[] [] None\n"


def test_what_is_left_out_is_shown(world):
    world.inside("pass")
    said = world.python("import glovebox.environment as e; e.main([])")
    shown = {line.split(": ")[1]: line.split(": ")[2] for line in said.splitlines() if line.startswith("left out: ")}
    place = f"{world.site.resolve()}/"
    for name in SECRETS:
        assert shown[f"{place}greeting/{name}"] == "could be a secret"
    assert shown[f"{place}greeting/id.pem"] == shown[f"{place}greeting/deploy"] == "holds a private key"
    assert shown[f"{place}greeting/linked.txt"] == shown[f"{place}linked_package"] == "a link"
    assert shown[f"{place}evil.pth"] == shown[f"{place}__editable__.developed.pth"] == "leads to other folders"
    assert shown[f"{place}greeting-1.0.dist-info/direct_url.json"] == "names folders of this machine"


def test_a_second_start_copies_nothing_and_a_new_package_does(world):
    world.inside("pass")
    before = world.copies()
    assert len(before) == 1 and world.inside("print(1)") == "1\n" and world.copies() == before
    world.end()
    assert world.inside("print(2)") == "2\n" and world.copies() == before
    world.end()
    world.add("later", "A = 'new'\n")
    assert world.inside("import later; print(later.A)") == "new\n"
    after = world.copies()
    assert len(after) == 1 and set(after) != set(before)


def test_another_environment_is_copied_by_its_own_interpreter(world):
    done = subprocess.run([sys.executable, "-m", "glovebox.environment", world.venv], check=False, text=True, env={
        **os.environ, "GLOVEBOX_STATE": str(world.folder / "state"), "GLOVEBOX_PROGRAM": str(BUILD / "glovebox"),
        "PYTHONPATH": str(TOP / "packages/python/src")}, capture_output=True, timeout=300)
    assert done.returncode == 0 and "template this-environment" in done.stdout.splitlines()[-1], done
    assert any({"name": "greeting", "version": "1.0"} in manifest["python"] for _, manifest in world.copies().values())


def test_a_folder_that_is_no_environment_is_named(tmp_path):
    done = subprocess.run([sys.executable, "-m", "glovebox.environment", str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{tmp_path} is no virtual environment: it has no program bin/python\n"


def test_a_compiled_file_is_of_the_source_that_lies_beside_it(tmp_path):
    source = tmp_path / "module.py"
    source.write_text("A = 1\n")
    cache = pathlib.Path(importlib.util.cache_from_source(str(source), optimization=""))
    cache.parent.mkdir()
    status, content = source.stat(), source.read_bytes()
    fresh = environment.compiled(str(source), content, status, "opt/module.py")
    cache.write_bytes(importlib.util.MAGIC_NUMBER + b"\0" * 12 + b"of another source")
    assert environment.compiled(str(source), content, status, "opt/module.py") == fresh
    times = int(status.st_mtime).to_bytes(4, "little") + len(content).to_bytes(4, "little")
    cache.write_bytes(importlib.util.MAGIC_NUMBER + b"\0" * 4 + times + fresh[16:])
    assert environment.compiled(str(source), content, status, "opt/module.py") == fresh
    source.write_text("A = (1 +\n")
    assert environment.compiled(str(source), source.read_bytes(), source.stat(), "opt/module.py") is None

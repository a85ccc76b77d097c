"""Templates from wheels: what a recipe lists under `pip` is fetched by the new root's own pip, pinned by a lock, and tried
before the template takes its place. The index is a folder that a server of the test's own shows on loopback."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time

import pytest

from conftest import TOP, Glovebox
from package_index import IndexServer, wheel_of

pytestmark = pytest.mark.skipif(not shutil.which("dpkg-query"), reason="this machine has no dpkg to copy packages of")

RECIPE = """\
name: {name}
base: host-copy
packages: [bash, coreutils, python3{packages}]
pip: {pip}
leave_out: [{places}/*/tests, {places}/greet.json]
languages:
  python: {{command: [/usr/bin/python3, "{{file}}"], file: main.py}}
zygotes: {zygotes}
"""
PLACES = "usr/local/lib/python3.*/dist-packages"
WRITES = "import pathlib\n(pathlib.Path.home() / 'written').write_text('')\nprint('said')\n"
THREAD = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    server = IndexServer(folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    wheel_of(folder, "greet", "1.0", {"greet.py": "import helper\nWORD = helper.WORD\n", "greet.json": "{}",
                                      "greet_data/__init__.py": "", "greet_data/tests/__init__.py": ""}, needs=["helper>=1"])
    wheel_of(folder, "helper", "1.1", {"helper.py": "WORD = 'one'\n"})
    wheel_of(folder, "threaded", "1.0", {"threaded.py": THREAD})
    wheel_of(folder, "broken", "1.0", {"broken.py": "import a_module_that_is_missing\n"})
    wheel_of(folder, "aborts", "1.0", {"aborts.py": "import os\nos.abort()\n"})
    wheel_of(folder, "exits", "1.0", {"exits.py": "import os\nos._exit(0)\n"})
    wheel_of(folder, "several", "1.0", {"needs_more.py": "import a_module_that_is_missing\n", "writes.py": WRITES, "_own.py": ""})
    wheel_of(folder, "dataonly", "1.0", {"dataonly_files/some.txt": "no module"})
    wheel_of(folder, "Mixed.Name", "1.0", {"mixed/__init__.py": "", "mixed/name.py": "import os\n"})
    wheel_of(folder, "byaddress", "1.0", {"byaddress.py": ""}, needs=["built @ https://127.0.0.1:1/b.tar.gz"])
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def wheels(tmp_path_factory, index):
    """Builds a recipe; what does not end well gives its last line."""
    glovebox = Glovebox(tmp_path_factory.mktemp("wheels"))
    glovebox.state = glovebox.folder / "state"
    recipe = glovebox.folder / "mine.yaml"
    env = {"PIP_CONFIG_FILE": os.devnull, "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": "",
           "PIP_INDEX_URL": f"http://127.0.0.1:{index.server_port}/simple"}

    def build(*wanted, words=(), zygotes="{}", packages=", python3-pip", env=env):
        recipe.write_text(RECIPE.format(name="theirs", pip=json.dumps(wanted), zygotes=zygotes, packages=packages, places=PLACES))
        done = glovebox("template", "build", recipe, "--name", "mine", "--json", *words, env=env, timeout=300)
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr.decode().splitlines()[-1]

    build.glovebox, build.env, build.lock = glovebox, env, recipe.with_suffix(".lock")
    build.cache = glovebox.state / "wheels/mine/archives"
    build.root = glovebox.state / "templates/mine/root"
    yield build


def versions(manifest):
    assert isinstance(manifest, dict), manifest
    return {one["name"]: one["version"] for one in manifest["python"]}


def in_place(wheels):
    """What the template that stands under the name is."""
    return json.loads(wheels.glovebox("template", "show", "mine", "--json").stdout)["digest"]


@pytest.fixture(scope="module")
def story(wheels, index):
    """Three builds, since each takes seconds: the first of a list, a second from the lock, one of a longer list."""
    found = {"first": wheels("greet>=1"), "lock": wheels.lock.read_text(), "cached": {one.name for one in wheels.cache.iterdir()}}
    folder = next(wheels.root.glob(PLACES))
    found["files"] = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    wheel_of(index.folder, "helper", "1.2", {"helper.py": "WORD = 'two'\n"})
    wheels.away = {**wheels.env, "PIP_INDEX_URL": "http://127.0.0.1:1/simple"}
    found["again"] = wheels("greet>=1", env=wheels.away, words=["--offline"])
    found["longer"] = wheels("greet>=1", "helper")
    found["longer_lock"] = wheels.lock.read_text()
    return found


def test_the_first_build_pins_what_it_has_fetched(wheels, story):
    assert (versions(story["first"])["greet"], versions(story["first"])["helper"]) == ("1.0", "1.1")
    rows = [line for line in story["lock"].splitlines() if not line.startswith("#")]
    assert [row.split(" ")[0] for row in rows] == ["greet==1.0", "helper==1.1"] and all("--hash=sha256:" in row for row in rows)
    assert story["cached"] == {"greet-1.0-py3-none-any.whl", "helper-1.1-py3-none-any.whl"}
    assert "greet_data/__init__.py" in story["files"]
    assert "greet_data/tests" not in story["files"] and "greet.json" not in story["files"], "left out by the recipe"
    assert not (wheels.root / "usr/share/glovebox/archives").exists()
    assert story["first"]["name"] == "mine", "--name stands for the recipe's own"


def test_a_lock_outlives_newer_versions_and_a_lost_index(story):
    assert story["again"]["digest"] == story["first"]["digest"]


def test_another_list_is_resolved_anew(story):
    assert versions(story["longer"])["helper"] == "1.2" and "helper==1.2" in story["longer_lock"]


def test_what_is_not_in_the_cache_is_reported(wheels, story):
    shutil.rmtree(wheels.cache)
    text = wheels("greet>=1", "helper", env=wheels.away)
    assert "the package index cannot be reached" in text and "python-small" in text, text
    assert "2 of 2 wheels are not in the cache" in wheels("greet>=1", "helper", words=["--offline"])
    assert "there is no lock for this list" in wheels("greet", words=["--offline"])


def test_other_bytes_than_the_lock_names_are_refused(wheels, index, story):
    wheel_of(index.folder, "helper", "1.2", {"helper.py": "WORD = 'another'\n"})
    shutil.rmtree(wheels.cache, ignore_errors=True)
    text = wheels("greet>=1", "helper")
    assert "other archives than the lock names" in text and "helper" in text, text
    shutil.copy(index.folder / "helper-1.2-py3-none-any.whl", wheels.cache)
    assert "other archives than the lock names" in wheels("greet>=1", "helper"), "what lies in the cache is compared as well"
    assert in_place(wheels) == story["longer"]["digest"], "the template of before stays"


@pytest.mark.parametrize("wanted, more, words", [
    (["byaddress"], {}, ["byaddress", "built", "only packages of the index"]),
    (["nosuchpackage"], {}, ["no wheel of nosuchpackage"]),
    (["helper ;;"], {}, ["helper ;;", "cannot be read"]),
    (["helper"], {"packages": ""}, ["python3-pip"]),
])
def test_what_cannot_be_fetched_is_reported(wheels, story, wanted, more, words):
    text = wheels(*wanted, **more)
    assert isinstance(text, str) and all(word in text for word in words), text


def test_zygote_sets_are_tried_before_the_template_takes_its_place(wheels, story):
    text = wheels("threaded", zygotes="{data: [json, threaded]}")
    assert "import threaded leaves a thread running" in text and "zygote set 'data'" in text, text
    text = wheels("broken", zygotes="{data: [broken]}")
    assert "import broken fails" in text and "a_module_that_is_missing" in text, text
    assert in_place(wheels) == story["longer"]["digest"]


def test_packages_are_imported_before_the_template_takes_its_place(wheels, story):
    for wanted, said in (("broken", "import broken: ModuleNotFoundError: No module named 'a_module_that_is_missing'"),
                         ("aborts", "it ends with signal 6"), ("exits", "it ends the interpreter, with 0")):
        text = wheels("greet", wanted, "helper")
        assert f"package {wanted} cannot be imported: {said}; take it out of `pip`" in text, text
        assert in_place(wheels) == story["longer"]["digest"]


def test_a_template_is_rolled_back_and_back_again(wheels, story):
    for wanted in ("first", "longer", "first"):
        done = wheels.glovebox("template", "rollback", "mine")
        assert done.returncode == 0 and in_place(wheels) == story[wanted]["digest"], done.stderr
    assert wheels.glovebox("template", "remove", "mine").returncode == 0
    done = wheels.glovebox("template", "rollback", "mine")
    assert done.returncode != 0 and b"no earlier template 'mine'" in done.stderr, "a removal takes both"
    assert os.listdir(wheels.glovebox.state / "templates") == []


def test_names_that_are_none_are_refused(wheels):
    done = wheels.glovebox("template", "build", "minimal", "--name", "Bad/Name")
    assert done.returncode == 125 and b"--name must be" in done.stderr


def test_a_file_of_requirements_adds_its_packages(wheels, tmp_path):
    """As pip-compile writes it: comments, markers, digests on lines of their own. The recipe's lock stays as it was."""
    listed = tmp_path / "requirements.txt"
    listed.write_text("# made by a tool\n\nthreaded==1.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n"
                      "greet>=1  # why\nhelper==1.1; sys_platform == 'linux'\n")
    before = wheels.lock.read_text() if wheels.lock.exists() else None
    done = versions(wheels("helper", words=("--requirements", listed)))
    assert {name: done.get(name) for name in ("greet", "helper", "threaded")} == {"greet": "1.0", "helper": "1.1", "threaded": "1.0"}
    assert "threaded" in (tmp_path / "requirements.txt.lock").read_text()
    assert (wheels.lock.read_text() if wheels.lock.exists() else None) == before


@pytest.mark.parametrize("line, says", [
    ("-e .", "requirements.txt:2: '-e .' is an option of pip"), ("--index-url http://127.0.0.1:1", "is an option of pip"),
    ("-r other.txt", "is an option of pip"), ("built @ https://127.0.0.1:1/b.tar.gz", "is no package of an index"),
    ("./here", "is no package of an index"), ("git+https://127.0.0.1:1/x", "is no package of an index"), (">=2", "is no package of an index")])
def test_what_is_no_package_is_refused_with_its_line(wheels, tmp_path, line, says):
    listed = tmp_path / "requirements.txt"
    listed.write_text(f"greet\n{line}\n")
    assert says in wheels("helper", words=("--requirements", listed))


def test_a_file_of_requirements_that_is_none(wheels, tmp_path):
    assert "no file" in wheels("helper", words=("--requirements", tmp_path / "missing.txt"))
    assert "no file" in wheels("helper", words=("--requirements", tmp_path))
    (tmp_path / "long.txt").write_text("#" * (1 << 19))
    assert "at most 262144 bytes" in wheels("helper", words=("--requirements", tmp_path / "long.txt"))


def digest_in(index, name):
    return hashlib.sha256((index.folder / name).read_bytes()).hexdigest()


def uv_lock(index, digest=None, more=""):
    digest = digest or digest_in(index, "helper-1.1-py3-none-any.whl")
    return f"""version = 1
requires-python = ">=3.9"
[[package]]
name = "mine"
version = "0.1.0"
source = {{ virtual = "." }}
dependencies = [{{ name = "helper" }}, {{ name = "for-windows", marker = "sys_platform == 'win32'" }}]
[package.dev-dependencies]
dev = [{{ name = "broken" }}]
[[package]]
name = "helper"
version = "1.1"
source = {{ registry = "https://index.example.org/simple" }}
wheels = [{{ url = "https://127.0.0.1:1/helper-1.1-py3-none-any.whl", hash = "sha256:{digest}", size = 1 }}]
[[package]]
name = "for-windows"
version = "1.0"
source = {{ registry = "https://index.example.org/simple" }}
[[package]]
name = "broken"
version = "1.0"
source = {{ registry = "https://index.example.org/simple" }}
{more}"""


def poetry_lock(index):
    return f"""[[package]]
name = "helper"
version = "1.1"
optional = false
groups = ["main"]
files = [{{file = "helper-1.1-py3-none-any.whl", hash = "sha256:{digest_in(index, "helper-1.1-py3-none-any.whl")}"}}]
[[package]]
name = "broken"
version = "1.0"
optional = false
groups = ["dev"]
files = []
[metadata]
lock-version = "2.1"
"""


def pylock(index):
    return f"""lock-version = "1.0"
created-by = "a tool"
[[packages]]
name = "helper"
version = "1.1"
[[packages.wheels]]
name = "helper-1.1-py3-none-any.whl"
hashes = {{sha256 = "{digest_in(index, "helper-1.1-py3-none-any.whl")}"}}
[[packages]]
name = "for-windows"
version = "1.0"
marker = "sys_platform == 'win32'"
"""


PROJECT = """[project]
name = "mine"
version = "0.1.0"
dependencies = ["helper==1.1", "for-windows>=1; sys_platform == 'win32'"]
[project.optional-dependencies]
more = ["broken"]
"""


@pytest.fixture(scope="module")
def read_project():
    """What helpers/project_file.py says of a file, without a build: requirements and digests, or why not."""
    pytest.importorskip("pip._vendor.packaging")
    helpers = TOP / "src/template/helpers"
    code = "\n".join((helpers / name).read_text() for name in ("common.py", "pip_resolution.py", "project_file.py"))

    def read(name, text):
        names = {}
        exec(compile(code, "project_file.py", "exec"), names)  # pylint: disable=exec-used
        said = []
        names["give_up"] = lambda text: said.append(text) or sys.exit(1)
        try:
            return names["read_project"](name, text)
        except SystemExit:
            return said[0]
    return read


@pytest.mark.parametrize("name, text", [("pyproject.toml", lambda index: PROJECT), ("uv.lock", uv_lock),
                                        ("poetry.lock", poetry_lock), ("pylock.toml", pylock)])
def test_a_project_says_what_it_needs(read_project, index, name, text):
    """The versions and digests of a lock; what is for development and for other systems is left out."""
    needs, digests = read_project(name, text(index))
    needs = [need for need in needs if "win32" not in need]
    assert needs == ["helper==1.1"], needs
    assert digests == ({} if name == "pyproject.toml" else {("helper", "1.1"): {digest_in(index, "helper-1.1-py3-none-any.whl")}})


@pytest.mark.parametrize("name, text, says", [
    ("uv.lock", lambda index: uv_lock(index, more='[[package]]\nname = "far"\nversion = "1"\nsource = { git = "https://h/x" }\n')
     .replace('{ name = "helper" }', '{ name = "helper" }, { name = "far" }'), "far comes from a git"),
    ("pyproject.toml", lambda index: "[project", "pyproject.toml is no TOML"),
    ("pyproject.toml", lambda index: "[tool.poetry.dependencies]\nhelper = '^1'\n", "give poetry.lock"),
    ("pyproject.toml", lambda index: '[project]\ndependencies = ["x @ https://h/x.tar.gz"]\n', "needs x from an address"),
    ("pyproject.toml", lambda index: '[project]\ndependencies = [">=2"]\n', "cannot be read"),
    ("pyproject.toml", lambda index: '[project]\ndependencies = "x"\n', "is no list"),
    ("other.toml", lambda index: "a = 1\n", "is neither a pyproject.toml nor a lock")])
def test_a_project_that_cannot_be_followed(read_project, index, name, text, says):
    said = read_project(name, text(index))
    assert isinstance(said, str) and says in said, said


def test_a_template_of_a_lock_has_its_versions_and_bytes(wheels, index, tmp_path):
    wheel_of(index.folder, "helper", "1.3", {"helper.py": "WORD = 'three'\n"})
    listed = tmp_path / "uv.lock"
    listed.write_text(uv_lock(index))
    done = versions(wheels("threaded", words=("--requirements", listed)))
    assert {name: done.get(name) for name in ("helper", "threaded", "broken", "mine")} == \
        {"helper": "1.1", "threaded": "1.0", "broken": None, "mine": None}
    assert "helper==1.1 --hash=sha256:" in (tmp_path / "uv.lock.lock").read_text()
    listed.write_text(uv_lock(index, "0" * 64))
    (tmp_path / "uv.lock.lock").unlink()
    assert "another archive of helper 1.1 than the project's lock names" in wheels("threaded", words=("--requirements", listed))
    (tmp_path / "nul.toml").write_text("a\0b")
    assert "has a zero byte" in wheels("threaded", words=("--requirements", tmp_path / "nul.toml"))


def test_packages_of_cran_are_those_of_debian(wheels):
    recipe = wheels.glovebox.folder / "r.yaml"
    recipe.write_text(RECIPE.format(name="r-of-cran", pip="[]", zygotes="{}", packages="", places=PLACES) + "r: [data.tableX]\n")
    done = wheels.glovebox("template", "build", recipe)
    assert done.returncode != 0 and b"r-cran-data.tablex" in done.stderr
    recipe.write_text(RECIPE.format(name="r-of-cran", pip="[]", zygotes="{}", packages="", places=PLACES) + "r: [../x]\n")
    assert b"the name of a package of CRAN" in wheels.glovebox("template", "build", recipe).stderr


def test_a_build_that_was_killed_while_it_fetched_goes_on(wheels, index, story):
    """More than one pip's share of wheels: the last share is there when a wheel of the first one stalls."""
    parts = [f"part{number}" for number in range(10)]
    for name in parts:
        wheel_of(index.folder, name, "1.0", {f"{name}.py": f"NAME = '{name}'\n"})
    whole = wheels(*parts)
    assert versions(whole)["part9"] == "1.0"
    shutil.rmtree(wheels.cache)
    index.stalls = "part0-1.0-py3-none-any.whl"
    killed = wheels.glovebox.start("template", "build", wheels.lock.with_suffix(".yaml"), "--name", "mine", env=wheels.env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        there = {f"{name}-1.0-py3-none-any.whl" for name in parts[8:]}
        assert index.stalled.wait(60)
        end = time.monotonic() + 60
        while {one.name for one in wheels.cache.iterdir()} != there and time.monotonic() < end:
            time.sleep(0.05)
    finally:
        killed.kill()
        killed.wait()
        index.stalls = None
        index.let_go.set()
    assert {one.name for one in wheels.cache.iterdir()} == there
    assert in_place(wheels) == whole["digest"], "the template of before stays"
    index.asked.clear()
    again = wheels(*parts)
    assert again["digest"] == whole["digest"]
    assert {name for name in index.asked if name.startswith("part")} == {f"{name}-1.0-py3-none-any.whl" for name in parts[:8]}
    assert not list((wheels.glovebox.state / "templates").glob(".building-*")), "nothing of the killed one is left"


def test_one_module_that_can_be_imported_is_enough_and_what_it_writes_at_home_is_not_kept(wheels):
    done = wheels("several>=1", "dataonly", "threaded")
    assert {"several", "dataonly", "threaded"} <= set(versions(done)), done
    assert not list(wheels.root.rglob("written"))


def test_a_name_may_be_spelled_in_another_way_than_the_wheel(wheels):
    done = wheels("MIXED-name")
    assert {one.lower() for one in versions(done)} & {"mixed.name", "mixed-name"}, done
    assert (next(wheels.root.glob(PLACES)) / "mixed/name.py").exists()

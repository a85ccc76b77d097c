"""Templates: what is built, what is in it, that the same packages give the same digest, and that nothing is
left of a build that did not end.

Most tests build `minimal` from copies of this machine's own packages: it takes seconds and no network."""

import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time

import pytest

from conftest import TOP, Glovebox
from described import MOMENT

pytestmark = pytest.mark.skipif(not shutil.which("dpkg-query"), reason="this machine has no dpkg to copy packages of")

MOUNT_POINTS = ["proc", "dev", "tmp", "workspace", "run", "home/user", "usr/lib/glovebox"]
RECIPE = """\
name: {name}
base: debian
packages: [bash, coreutils]
languages:
  bash: {{command: [/bin/bash, "{{file}}"], file: main.sh}}
"""


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A state folder with `minimal` in it, and the program that looks there."""
    glovebox = Glovebox(tmp_path_factory.mktemp("template"))
    glovebox.state = glovebox.folder / "state"
    done = glovebox("template", "build", "minimal", "--offline", "--json", timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    glovebox.manifest = json.loads(done.stdout)
    glovebox.root = glovebox.state / "templates" / "minimal" / "root"
    return glovebox


def every_entry(root):
    for where, folders, files in os.walk(root):
        for name in folders + files:
            path = pathlib.Path(where, name)
            yield path, path.lstat()


def one_line(done, *words):
    text = done.stderr.decode().splitlines()[-1]
    assert done.returncode == 125 and text.startswith("glovebox: "), (done.returncode, text)
    for word in words:
        assert word in text, text


def inside(built, *command):
    """Runs a command in the root, as its build did: without network, and gone with its end."""
    root = built.root
    return subprocess.run(["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--net", "--root", root,
                           *command], capture_output=True, check=True, env={"PATH": "/usr/bin"}).stdout.decode()


def test_a_build_says_first_what_it_takes(glovebox, tmp_path):
    """Also one that does not even begin."""
    recipe = tmp_path / "big.yaml"
    recipe.write_text(RECIPE.format(name="big").replace("packages:", "disk: 9000GiB\ntakes: all that there is, 1000 years\npackages:"))
    done = glovebox("template", "build", recipe, "--offline")
    assert done.stderr.decode().splitlines()[0] == (
        "glovebox: template big: all that there is, 1000 years; needs 9216000 MiB free while it is built")
    assert done.returncode == 125
    recipe.write_text(RECIPE.format(name="big").replace("packages:", "takes: [1]\npackages:"))
    one_line(glovebox("template", "build", recipe, "--offline"), "big.yaml:3:8")


def test_manifest_says_what_is_inside(built):
    manifest = built.manifest
    assert manifest["name"] == "minimal" and manifest["source"] == "host-copy"
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", manifest["digest"])
    assert re.fullmatch(MOMENT, manifest["created_at"])
    assert manifest["languages"]["python"] == {"command": ["/usr/bin/python3", "{file}"], "file": "main.py"}
    packages = {one["name"]: one["version"] for one in manifest["packages"]}
    installed = subprocess.run(["dpkg-query", "-W", "-f=${Version}", "coreutils"], capture_output=True, check=True)
    assert packages["coreutils"] == installed.stdout.decode()
    assert {"python3", "bash", "libc6"} <= packages.keys()
    folder = built.state / "templates" / "minimal"
    kept = json.loads((folder / "manifest.json").read_text())
    kept["created_at"] = kept.pop("created")
    assert kept == manifest
    assert (folder / "digest").read_text() == manifest["digest"] + "\n"
    assert manifest["files"] == sum(1 for _ in every_entry(folder / "root"))


def test_python_and_bash_run_in_it(built):
    assert inside(built, "/usr/bin/python3", "-c", "import ssl, sqlite3, json; print(6 * 7)") == "42\n"
    assert inside(built, "/bin/bash", "-c", "echo a b | wc -w") == "2\n"


def test_every_file_is_harmless(built):
    for path, status in every_entry(built.root):
        mode = status.st_mode
        assert stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode), path
        assert (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid()), path
        assert stat.S_ISLNK(mode) or stat.S_IMODE(mode) in (0o755, 0o644), path
        assert not os.listxattr(path, follow_symlinks=False), path
        assert status.st_mtime <= 1735689600, path


def test_files_are_copies_with_inodes_of_their_own(built):
    for path, status in every_entry(built.root):
        if not stat.S_ISREG(status.st_mode):
            continue
        assert status.st_nlink == 1, path
        host = pathlib.Path("/", path.relative_to(built.root))
        if host.exists():
            assert (host.stat().st_dev, host.stat().st_ino) != (status.st_dev, status.st_ino), path


def test_nothing_of_the_machine_is_in_it(built):
    root = built.root
    assert (root / "etc/passwd").read_text() == "user:x:1000:1000::/home/user:/bin/bash\n"
    assert (root / "etc/group").read_text() == "user:x:1000:\n"
    assert "localhost" in (root / "etc/hosts").read_text()
    assert (root / "etc/resolv.conf").read_text() == ""
    for name in ["etc/shadow", "etc/machine-id", "etc/hostname", "etc/ssh", "etc/apt", "root", "var/lib/dpkg", "sys",
                 "usr/share/doc", "usr/share/man", "usr/local", "boot"]:
        assert not os.path.lexists(root / name) or (name == "usr/local" and not any(
            entry.is_file() for entry in (root / name).rglob("*"))), name
    for name in MOUNT_POINTS:
        assert (root / name).is_dir() and not any((root / name).iterdir()), name


def test_python_is_compiled_for_good(built):
    sources = [path for path in built.root.glob("usr/lib/python3*/*.py")]
    assert len(sources) > 100
    for source in sources:
        compiled = list((source.parent / "__pycache__").glob(source.stem + ".cpython-*.pyc"))
        assert compiled, source
        flags = int.from_bytes(compiled[0].read_bytes()[4:8], "little")
        assert flags == 0b01, f"{compiled[0]} looks at its source when it is loaded"


def test_same_packages_give_the_same_digest(built, tmp_path):
    done = built("template", "build", "minimal", "--offline", "--json", "--state", tmp_path, timeout=600)
    again = json.loads(done.stdout)
    assert again["packages"] == built.manifest["packages"]
    assert again["digest"] == built.manifest["digest"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_ordinary_user_gets_the_same_digest(built):
    with tempfile.TemporaryDirectory() as state: # pytest's own folders are closed to others
        os.chown(state, 4321, 4321)
        done = subprocess.run(["setpriv", "--reuid=4321", "--regid=4321", "--clear-groups", built.program, "template",
                               "build", "minimal", "--offline", "--json", "--state", state],
                              env=built.environment({"HOME": "/"}), capture_output=True, timeout=600, check=False)
        if b"no new namespaces" in done.stderr or b"Operation not permitted" in done.stderr:
            pytest.skip("this machine gives ordinary users no namespaces")
        assert done.returncode == 0, done.stderr.decode()
        assert json.loads(done.stdout)["digest"] == built.manifest["digest"]
        root = pathlib.Path(state, "templates/minimal/root")
        assert {status.st_uid for _, status in every_entry(root)} == {4321}


def test_list_show_and_remove(built, tmp_path):
    for verb in ["list"], ["show", "minimal"]:
        assert "minimal" in built("template", *verb).stdout.decode()
    assert [one["name"] for one in json.loads(built("template", "list", "--json").stdout)] == ["minimal"]
    assert json.loads(built("template", "show", "minimal", "--json").stdout) == built.manifest
    compiled = tmp_path / "templates/compiled"
    compiled.mkdir(parents=True)
    (compiled / "manifest.json").write_text(json.dumps(built.manifest | {
        "name": "compiled", "languages": {"c": {"compile": ["/usr/bin/gcc", "{file}"], "command": ["/run/main"], "file": "main.c"}}}))
    (compiled / "root").mkdir()
    assert "language     c: /usr/bin/gcc {file} && /run/main\n" in \
        built("template", "show", "compiled", "--state", str(tmp_path)).stdout.decode()
    recipe = tmp_path / "small.yaml"
    recipe.write_text(RECIPE.format(name="small"))
    assert built("template", "build", recipe, "--offline", timeout=600).returncode == 0
    assert [one["name"] for one in json.loads(built("template", "list", "--json").stdout)] == ["minimal", "small"]
    assert built("template", "remove", "small").returncode == 0
    assert sorted(os.listdir(built.state / "templates")) == ["minimal"]
    one_line(built("template", "remove", "small"), "small", "template list")
    one_line(built("template", "show", "small"), "template list")
    one_line(built("template", "show", "node"), "template build node")
    one_line(built("template", "show", "../templates/minimal"), "no name")


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def processes_that_name(text):
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in entry.read_bytes():
                found.append(entry)
        except OSError:
            pass
    return found


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
@pytest.mark.parametrize("moment", ["root/usr/bin", "root/usr/lib/python3.*/__pycache__", "root/workspace"])
def test_interrupted_build_leaves_nothing(built, tmp_path, number, code, moment):
    state = tmp_path / "state"
    build = built.start("template", "build", "minimal", "--offline", "--state", state, stderr=subprocess.DEVNULL)
    wait_for(lambda: list(state.glob(f"templates/.building-*/{moment}")) or build.poll() is not None)
    build.send_signal(number)
    assert build.wait(60) == code
    wait_for(lambda: not processes_that_name(str(state)))
    assert json.loads(built("template", "list", "--json", "--state", state).stdout) == []
    if number != signal.SIGKILL:
        assert os.listdir(state / "templates") == []
    recipe = tmp_path / "wrong.yaml" # a build that ends soon sweeps as well
    recipe.write_text(RECIPE.format(name="x").replace("coreutils", "no-such-package"))
    one_line(built("template", "build", recipe, "--offline", "--state", state), "no-such-package", "apt install")
    assert os.listdir(state / "templates") == []


def test_build_leaves_the_work_of_another_alone(built, tmp_path):
    """Two builds at once: the second must not take what the first works in for dead."""
    state = tmp_path / "state"
    first = built.start("template", "build", "minimal", "--offline", "--state", state, stderr=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL)
    wait_for(lambda: list(state.glob("templates/.building-*/root/usr")))
    second = built("template", "build", "minimal", "--offline", "--state", state, timeout=600)
    assert second.returncode == 0 and first.wait(600) == 0
    assert sorted(os.listdir(state / "templates")) == [".previous-minimal", "minimal"]


def test_template_in_use_stays_until_it_is_let_go(built, tmp_path):
    """gloveboxd holds a shared lock on each template that it serves; sandboxes see its files until they end."""
    recipe = tmp_path / "small.yaml"
    recipe.write_text(RECIPE.format(name="small"))
    templates = tmp_path / "templates"

    def build():
        assert built("template", "build", recipe, "--offline", "--state", tmp_path, timeout=600).returncode == 0

    build()
    user = os.open(templates / "small", os.O_RDONLY)
    fcntl.flock(user, fcntl.LOCK_SH | fcntl.LOCK_NB) # a new template can be used at once
    build()
    build() # the one in use is no longer the one of before
    assert len(os.listdir(templates)) == 3 and (templates / "small/root/bin/bash").exists()
    os.stat("root/usr/bin/bash", dir_fd=user)
    assert len(json.loads(built("template", "list", "--json", "--state", tmp_path).stdout)) == 1
    os.close(user)
    build()
    assert sorted(os.listdir(templates)) == [".previous-small", "small"]


@pytest.mark.parametrize("text, place, word", [
    ("name: x\nbase: debian\npakages: [bash]\n", "3:1", "pakages"),
    ("name: x\nname: y\n", "2:1", "twice"),
    ("name: X\n", "1:7", "a-z"),
    ("name: x\nbase: ubuntu\n", "2:7", "host-copy"),
    ("name: x\nbase: debian\npackages: [--evil]\n", "3:12", "--evil"),
    ("name: x\nbase: debian\npackages: [bash]\nlanguages: {bash: {command: [bash], file: main.sh}}\n", "4:29", "path"),
    ("name: x\nbase: debian\npackages: [bash]\nlanguages: {bash: {command: [/bin/bash]}}\n", "4:19", "file"),
    ("name: x\nbase: debian\npackages: [bash]\nlanguages: {}\nenv: {LD_PRELOAD: x}\n", "5:7", "LD_PRELOAD"),
    ("name: x\nbase: debian\npackages: [bash]\nlanguages: {}\nleave_out: [../../etc]\n", "5:13", "../../etc"),
    ("name: x\nbase: debian\npackages: [bash]\nlanguages: {}\ndisk: many\n", "5:7", "many"),
    ("name: x\nbase: debian\n", "1:1", "packages"),
    ("name: x\nbase: debian\npackages: [bash]\nlanguages: {}\npip: [\"x @ https://e.example/x.whl\"]\n", "5:7", "index"),
    ("name: x\nbase: debian\npackages: [bash]\nlanguages: {}\npip: [./x.whl]\n", "5:7", "index"),
    ("name: x\nbase: debian\npackages: [bash]\nlanguages: {}\npip: [\"-r list.txt\"]\n", "5:7", "index"),
    ("name: [x\n", "", "YAML"),
    ("", "1:1", "empty"),
])
def test_wrong_recipe_is_refused_with_its_place(built, tmp_path, text, place, word):
    recipe = tmp_path / "wrong.yaml"
    recipe.write_text(text)
    done = built("template", "build", recipe)
    one_line(done, f"wrong.yaml:{place}", word)
    assert done.stderr.count(b"\n") == 1
    assert os.listdir(built.state / "templates") == ["minimal"]


@pytest.mark.parametrize("path", sorted((TOP / "templates").glob("*.yaml")), ids=lambda path: path.stem)
def test_recipes_of_the_house_are_right(built, tmp_path, path):
    """Room that nobody has: the recipe is read and checked, and nothing is built."""
    text = re.sub(r"^disk: .*$", "disk: 8000GiB", path.read_text(), flags=re.MULTILINE)
    recipe = tmp_path / path.name
    recipe.write_text(text)
    one_line(built("template", "build", recipe, "--state", tmp_path / "state"), "check the disk", "make room")


def test_wrong_arguments_are_refused(built):
    one_line(built("template", "build"), "which template")
    one_line(built("template", "build", "nope"), "nope", "template list")
    one_line(built("template", "build", "nope.yaml"), "no file")
    one_line(built("template", "build", "minimal", "--base", "arch"), "debian")
    one_line(built("template", "frob"), "frob")
    one_line(built("template", "--frob"), "--frob")


def test_unreachable_mirrors_are_named_with_the_way_out(built, tmp_path):
    if not shutil.which("apt-get"):
        pytest.skip("this machine has no apt")
    proxy = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    if os.geteuid() != 0 and not shutil.which("newuidmap"):
        pytest.skip("an ordinary user needs newuidmap")
    done = built("template", "build", "minimal", "--state", tmp_path, env=proxy, timeout=600)
    one_line(done, "mirrors cannot be reached", "--base host-copy")
    assert os.listdir(tmp_path / "templates") == []


def test_debian_packages_give_the_digest_of_the_last_build(built, tmp_path):
    """From the mirrors; where there are none nothing can be said."""
    if not shutil.which("apt-get"):
        pytest.skip("this machine has no apt")
    done = built("template", "build", "minimal", "--json", "--state", tmp_path, timeout=1200)
    if done.returncode != 0 and b"cannot be reached" in done.stderr:
        pytest.skip("the package mirrors cannot be reached")
    assert done.returncode == 0, done.stderr.decode()
    manifest = json.loads(done.stdout)
    assert manifest["source"] == "debian"
    before = Glovebox(tmp_path)("template", "show", "minimal", "--json")
    last = json.loads(before.stdout) if before.returncode == 0 else {}
    if last.get("packages") == manifest["packages"] and last["languages"] == manifest["languages"]:
        assert last["digest"] == manifest["digest"]
    root = tmp_path / "templates" / "minimal" / "root"
    assert (root / "etc/passwd").read_text() == "user:x:1000:1000::/home/user:/bin/bash\n"
    assert not list(root.glob("var/lib/dpkg")) and not list(root.glob("etc/*shadow*"))
    assert all(stat.S_IMODE(status.st_mode) in (0o755, 0o644) for _, status in every_entry(root)
               if not stat.S_ISLNK(status.st_mode))

"""Code of packages and recipes while a template is built: recipes' commands and maintainer scripts of Debian packages; of
what wheels have run at Python's start see test_libs.py. None of the attacks of build_attacks.py reaches anything but the build itself."""

import base64
import ctypes
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import zlib

import pytest

import build_attacks
from conftest import TOP, Glovebox

pytestmark = pytest.mark.skipif(not shutil.which("dpkg-query"), reason="this machine has no dpkg to copy packages of")

SOURCE = pathlib.Path(build_attacks.__file__).read_text()
PACKED = base64.b64encode(zlib.compress(SOURCE.encode())).decode()  # a word of a recipe has at most 8 KiB
COMMAND = f"import base64, zlib; exec(zlib.decompress(base64.b64decode('{PACKED}')))"
RESULTS = "/usr/share/attacks/results"
# These need an id or a capability that dpkg has in its own user namespace, where it counts for nothing else.
OF_DPKG = {"other_user"}


@pytest.fixture
def host(monkeypatch):
    """What attacks aim at: a file that everybody may read, listeners, a process, and a variable."""
    folder = tempfile.TemporaryDirectory(prefix="glovebox-attacked-")
    os.chmod(folder.name, 0o777)
    pathlib.Path(folder.name, "secret").write_text("of the host")
    state = pathlib.Path(folder.name, "state")
    (state / "templates").mkdir(parents=True)
    tcp = socket.create_server(("127.0.0.1", 0))
    unix = socket.socket(socket.AF_UNIX)
    name = f"glovebox-attacked-{os.getpid()}"
    unix.bind("\0" + name)
    unix.listen()
    key = 0x67000000 + os.getpid() % 0xffffff
    segment = ctypes.CDLL(None).shmget(key, 4096, 0o1666)
    monkeypatch.setenv("GLOVEBOX_TEST_WORD", "word-of-the-host")
    yield {"folder": folder.name, "state": str(state), "port": tcp.getsockname()[1], "socket": name, "pid": os.getpid(), "shm": key,
           "word": "word-of-the-host", "nap": f"9{os.getpid()}"}
    ctypes.CDLL(None).shmctl(segment, 0, None)
    tcp.close()
    unix.close()
    folder.cleanup()


@pytest.fixture
def glovebox(tmp_path, host):
    glovebox = Glovebox(tmp_path)
    glovebox.state = pathlib.Path(host["state"])
    return glovebox


def recipe_of(folder, name, commands, packages=("bash", "coreutils", "python3", "libc-bin")):
    path = folder / f"{name}.yaml"
    path.write_text(f"name: {name}\nbase: debian\npackages: {json.dumps(list(packages))}\n"
                    "languages: {bash: {command: [/bin/bash, '{file}'], file: main.sh}}\n"
                    f"prepare: {json.dumps(commands)}\n")
    return path


def is_asleep(nap):
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if nap.encode() in entry.read_bytes():
                return True
        except OSError:
            pass
    return False


def check(found, allowed=()):
    assert len(found) == len(build_attacks.ATTACKS) > 45
    reached = {name for name, said in found.items() if said == "REACHED"} - set(allowed)
    assert not reached, reached
    wrong = {name: said for name, said in found.items() if "AttributeError" in said or "NameError" in said}
    assert not wrong, wrong


def test_a_command_of_a_recipe_reaches_nothing(glovebox, host, tmp_path):
    plants = f"HOST = {host!r}\n" + build_attacks.PLANTS
    recipe = recipe_of(tmp_path, "hostile", [
        ["/usr/bin/python3", "-c", COMMAND, json.dumps(host), RESULTS], ["/usr/bin/python3", "-c", plants]])
    before = sorted(os.listdir(host["folder"]))
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text()
    done = glovebox("template", "build", recipe, "--offline", "--json", timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    root = glovebox.state / "templates/hostile/root"
    check(json.loads((root / RESULTS[1:]).read_text()))
    assert sorted(os.listdir(host["folder"])) == before
    assert pathlib.Path("/proc/sys/kernel/core_pattern").read_text() == pattern
    assert not is_asleep(host["nap"]), "what a build has started ends with it"
    for path in [root, *root.rglob("*")]:
        status = path.lstat()
        assert (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid()) and not status.st_mode & 0o7000, path
        assert path.is_symlink() or status.st_mode & 0o777 in (0o755, 0o644), path
    assert os.path.islink(root / "usr/share/planted/link"), "a link may stand in it: sandboxes have another root"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes control groups without a delegated one")
def test_a_build_has_a_control_group_and_leaves_none(glovebox, tmp_path):
    def groups():
        top = pathlib.Path("/sys/fs/cgroup")
        return [path for above in (top, *top.iterdir()) for path in (above / "glovebox").glob("build-*") if path.is_dir()]
    if not any(pathlib.Path("/sys/fs/cgroup").iterdir()):
        pytest.skip("this machine shows no control groups")
    recipe = recipe_of(tmp_path, "slow", [["/bin/bash", "-c", "sleep 3"]])
    build = glovebox.start("template", "build", recipe, "--offline", stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    bounds = set()
    while build.poll() is None:
        for group in groups():
            for name in ("pids.max", "memory.max", "memory.limit_in_bytes"):
                try:
                    if f"build-{build.pid}." in group.name and (group / "cgroup.procs").read_text():
                        bounds.add((group / name).read_text().strip())
                except OSError:
                    pass
        time.sleep(0.1)
    assert build.returncode == 0
    assert {"512", str(4 << 30)} <= bounds, bounds
    assert not [group for group in groups() if f"build-{build.pid}." in group.name]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk")
def test_a_build_that_fills_the_disk_is_ended(glovebox, tmp_path):
    """In a mount namespace of the test's own, whose state folder is a disk of 400 MiB."""
    recipe = recipe_of(tmp_path, "full", [["/bin/bash", "-c", "head -c 1G /dev/zero > /usr/share/full; sleep 600"]],
                       ["bash", "coreutils"])
    recipe.write_text(recipe.read_text() + "disk: 100MiB\n")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", f"mount -t tmpfs -o size=400m none {glovebox.state} && exec "
                           f"{glovebox.program} template build {recipe} --offline --state {glovebox.state}"],
                          env=glovebox.environment({}), capture_output=True, timeout=120, check=False)
    assert done.returncode == 125 and b"has nearly filled the disk" in done.stderr, done.stderr.decode()


def test_no_filter_no_build(glovebox, tmp_path):
    """A wall that cannot be built stops the build."""
    data = tmp_path / "data"
    data.mkdir()
    for entry in (TOP / "build").iterdir():
        if entry.name in ("templates", "policies"):
            (data / entry.name).symlink_to(entry)
    done = glovebox("template", "build", recipe_of(tmp_path, "x", []), "--offline", env={"GLOVEBOX_DATA": str(data)})
    assert done.returncode == 125 and b"system call filter" in done.stderr, done.stderr
    assert os.listdir(glovebox.state / "templates") == []


def debian_package(folder, name, scripts, files, more=""):
    """A package in a folder of packages. Gives its entry in the index."""
    made = folder / f"{name}-made"
    (made / "DEBIAN").mkdir(parents=True)
    (made / "DEBIAN/control").write_text(f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: A. Nobody <a@b.org>\n"
                                         f"{more}Description: Attacks.\n")
    for script, text in scripts.items():
        (made / "DEBIAN" / script).write_text(text)
        (made / "DEBIAN" / script).chmod(0o755)
    for path, text in files.items():
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            (made / path).symlink_to(text[3:])
        else:
            (made / path).write_text(text)
    archive = folder / f"{name}_1.0_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", made, archive], check=True, capture_output=True)
    control = subprocess.run(["dpkg-deb", "--field", archive], check=True, capture_output=True).stdout.decode()
    digest = subprocess.run(["sha256sum", archive], check=True, capture_output=True).stdout.decode().split()[0]
    return f"{control}Filename: ./{archive.name}\nSize: {archive.stat().st_size}\nSHA256: {digest}\n\n"


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """The mirrors of this machine, and a folder with packages of the test."""
    if not shutil.which("apt-get"):
        pytest.skip("this machine has no apt")
    source, parts, config = tmp_path / "source", tmp_path / "sources", tmp_path / "apt.conf"
    source.mkdir()
    if os.path.isdir("/etc/apt/sources.list.d"):
        shutil.copytree("/etc/apt/sources.list.d", parts)
    parts.mkdir(exist_ok=True)
    if os.path.exists("/etc/apt/sources.list"):
        shutil.copy("/etc/apt/sources.list", parts / "host.list")
    (parts / "test.list").write_text(f"deb [trusted=yes] copy:{source} ./\n")
    config.write_text(f'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "{parts}";\n')
    monkeypatch.setenv("APT_CONFIG", str(config))
    return source


def build_from(glovebox, folder, packages):
    done = glovebox("template", "build", recipe_of(folder, "scripts", [], ["bash", "coreutils", "python3", *packages]),
                    timeout=1200)
    if done.returncode != 0 and b"cannot be reached" in done.stderr:
        pytest.skip("the package mirrors cannot be reached")
    return done


def test_a_maintainer_script_reaches_nothing(glovebox, host, tmp_path, mirror):
    script = f"#!/bin/sh\nset -e\ncat > /tmp/attack.py <<'END OF ATTACK'\n{SOURCE}\nEND OF ATTACK\n" \
             f"python3 /tmp/attack.py '{json.dumps(host)}' {RESULTS}.$1\n"
    (mirror / "Packages").write_text(debian_package(mirror, "hostile", {"postinst": script}, {}, "Depends: python3\n"))
    before = sorted(os.listdir(host["folder"]))
    done = build_from(glovebox, tmp_path, ["hostile"])
    assert done.returncode == 0, done.stderr.decode()
    assert sorted(os.listdir(host["folder"])) == before
    root = glovebox.state / "templates/scripts/root"
    check(json.loads((root / f"{RESULTS[1:]}.configure").read_text()), OF_DPKG)


def test_an_archive_that_writes_through_a_link_reaches_nothing(glovebox, host, tmp_path, mirror):
    """Essential packages are unpacked by programs of the host, before anything of the new root runs."""
    (mirror / "Packages").write_text(
        debian_package(mirror, "aaa-link", {}, {"usr/share/hostile": f"-> {host['folder']}"}, "Essential: yes\n")
        + debian_package(mirror, "zzz-file", {}, {"usr/share/hostile/written": "through it"}, "Essential: yes\n"))
    before = sorted(os.listdir(host["folder"]))
    done = build_from(glovebox, tmp_path, ["aaa-link"])
    assert sorted(os.listdir(host["folder"])) == before, done
    assert done.returncode == 125 or (glovebox.state / "templates/scripts/root").is_dir(), done

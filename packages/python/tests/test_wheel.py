"""The wheel for x86-64 Linux: an ordinary user installs it into a fresh environment and has a sandbox, from nothing of
the checkout; and it is made the same twice. tools/make-packages has made dist/ before."""

import contextlib
import hashlib
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

import pytest

from conftest import BUILD, TOP

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the wheel with programs is for x86-64")
THREE_LINES = """\
from glovebox import Sandbox
with Sandbox() as sandbox:
    print(sandbox.run_code("6 * 7").text)
"""
ORDINARY = 54321  # a user id that owns nothing


def digests():
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (TOP / "dist").rglob("*.whl")}


@pytest.fixture(scope="module")
def wheel():
    [path] = (TOP / "dist").glob("*.whl")
    return path


def as_ordinary_user(home, *command):
    """With nothing of this environment: no variables of glovebox, no folder of programs."""
    drop = ["/usr/bin/setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"]
    return subprocess.run([*(drop if os.geteuid() == 0 else []), *map(str, command)], cwd=home, check=False, timeout=120,
                          env={"HOME": str(home), "PATH": "/nowhere"}, capture_output=True, text=True)


def running_from(folder):
    found = {}
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            program = os.readlink(place / "exe")
            if program.startswith(f"{folder}/"):
                found[int(place.name)] = pathlib.Path(program)
    return found


@pytest.fixture
def home(wheel):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="glovebox-wheel-"))
    os.chmod(folder, 0o755)
    shutil.copy(wheel, folder)
    if os.geteuid() == 0:
        os.chown(folder, ORDINARY, ORDINARY)
    yield folder
    for pid, program in running_from(folder).items():
        if program.name == "glovebox":
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + 60
    while running_from(folder):
        assert time.monotonic() < end, running_from(folder)
        time.sleep(0.05)
    shutil.rmtree(folder)
    if os.geteuid() == 0:
        shutil.rmtree(f"/tmp/glovebox-private-{ORDINARY}", ignore_errors=True)


def test_three_lines_print_after_an_installation(home, wheel):
    base = pathlib.Path(sys.base_prefix, "bin/python3")
    done = as_ordinary_user(home, base if os.access(base, os.X_OK) and not str(base).startswith("/root") else
                            "/usr/bin/python3", "-m", "venv", home / "venv")
    assert done.returncode == 0, done
    python = home / "venv/bin/python"
    done = as_ordinary_user(home, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index",
                            home / wheel.name)
    assert done.returncode == 0, done
    done = as_ordinary_user(home, python, "-c", THREE_LINES)
    assert done.stdout == "42\n", done
    programs = {program.name for program in running_from(home).values()}
    assert {"glovebox", "gloveboxd", "glovebox-spawner"} <= programs
    maps = [pathlib.Path(f"/proc/{pid}/maps").read_text() for pid, program in running_from(home).items()
            if program.name == "gloveboxd"]
    libraries = set(re.findall(r"(/\S*/[\w.+-]+\.so[\d.]*)", "".join(maps)))
    assert {"libc.so.6", "ld-linux-x86-64.so.2"} <= {pathlib.Path(path).name for path in libraries}
    assert not {path for path in libraries if not path.startswith(f"{home}/")}, libraries
    assert str(TOP) not in "".join(maps)
    assert as_ordinary_user(home, python, "-c", THREE_LINES).stdout == "42\n"


def test_the_wheels_are_made_the_same_twice():
    before = digests()
    assert len(before) == 2
    subprocess.run([TOP / "tools/make-packages", BUILD.relative_to(TOP), "wheels"], check=True, capture_output=True, timeout=300)
    assert digests() == before


def libraries_of(path):
    """What the loader is asked for, and whether the kernel is asked for a loader."""
    said = subprocess.run(["objdump", "-p", path], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"NEEDED +(\S+)", said)), " INTERP " in said


def test_the_programs_need_nothing_of_the_system(wheel, tmp_path):
    assert wheel.name.endswith("-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    programs = tmp_path / "glovebox/_programs"
    found = {path.name: libraries_of(path) for path in programs.glob("glovebox*")}
    assert {"glovebox", "gloveboxd", "glovebox-spawner"} <= set(found)
    assert all(needed == (set(), False) for needed in found.values()), found
    here = {path.name for path in (programs / "lib").iterdir()}
    needed = set().union(*(libraries_of(path)[0] for path in (programs / "lib").iterdir()))
    assert "libc.so.6" in needed and needed <= here, needed - here
    papers = next(tmp_path.glob("*.dist-info/WHEEL")).read_text()
    assert re.findall("^Tag: py3-none-(.*)", papers, re.M) == wheel.stem.split("-")[-1].split(".")


def test_a_program_is_started_by_its_neighbours(tmp_path):
    """glovebox-launch in the place of a program: the name, the words and the environment are those of the caller."""
    shutil.copy(BUILD / "glovebox-launch", tmp_path / "show")
    lib = tmp_path / "lib"
    lib.mkdir()
    (tmp_path / "show.c").write_text("""#include <stdio.h>
        #include <string.h>
        #include <sys/auxv.h>
        #include <unistd.h>
        extern char **environ;
        static char zeros[100000];
        int main(int count, char **words) {
            char self[4096] = "";
            for (unsigned at = 0; at < sizeof zeros; at++)
                if (zeros[at]) return 9;
            readlink("/proc/self/exe", self, sizeof self - 1);
            printf("%s\\n%s\\n%lu\\n", self, (char *) getauxval(AT_EXECFN), getauxval(AT_PAGESZ));
            for (int at = 0; at < count; at++) puts(words[at]);
            for (char **at = environ; *at; at++) puts(*at);
            return 7;
        }""")
    subprocess.run(["cc", "-o", lib / "show", tmp_path / "show.c"], check=True)
    subprocess.run(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/lib", lib / "show"], check=True)
    for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"):
        shutil.copy(path, lib)
    lead = [f"{tmp_path}/show", f"{tmp_path}/show", "4096", "words", "a b", ""]
    for variables in ({}, {"A": "1"}, {"LD_PRELOAD": "/nowhere.so"}, {"LD_AUDIT": "/n.so", "B": "2", "LD_PRELOAD": "/n.so"}):
        done = subprocess.run(["words", "a b", ""], executable=tmp_path / "show", env=variables, check=False,
                              capture_output=True, text=True)
        kept = [f"{name}={value}" for name, value in variables.items() if not name.startswith("LD_")]
        assert done.returncode == 7 and done.stderr == "" and done.stdout.splitlines() == lead + kept, done
    for broken, cause in [(b"", "it is not a program"), (b"\x7fELF", "it is not a program"), (None, "it cannot be opened")]:
        (lib / "show").unlink()
        if broken is not None:
            (lib / "show").write_bytes(broken)
        done = subprocess.run([tmp_path / "show"], check=False, capture_output=True, text=True)
        assert done.returncode == 127 and f"{lib}/show: {cause}" in done.stderr, done
        (lib / "show").touch()


def test_the_record_names_every_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        record = next(name for name in names if name.endswith("/RECORD"))
        rows = [line.split(",")[0] for line in archive.read(record).decode().splitlines()]
    assert sorted(rows) == sorted(names) and len(set(names)) == len(names)
    assert "glovebox/_programs/gloveboxd" in names and "glovebox/_programs/minimal.tar.gz" in names


def test_the_pure_wheel_has_no_programs():
    [pure] = (TOP / "dist/any").glob("*-py3-none-any.whl")
    with zipfile.ZipFile(pure) as archive:
        assert not [name for name in archive.namelist() if "_programs" in name]

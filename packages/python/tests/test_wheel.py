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
    libraries = set(re.findall(r"(/\S*/lib\w[\w.+-]*\.so\S*)", "".join(maps)))
    foreign = {path for path in libraries if not path.startswith(f"{home}/")}
    assert {pathlib.Path(path).name.split(".")[0] for path in foreign} <= {"libc", "libm", "libresolv"}, foreign
    assert str(TOP) not in "".join(maps)
    assert as_ordinary_user(home, python, "-c", THREE_LINES).stdout == "42\n"


def test_the_wheels_are_made_the_same_twice():
    before = digests()
    assert len(before) == 2
    subprocess.run([TOP / "tools/make-packages", BUILD.relative_to(TOP)], check=True, capture_output=True, timeout=300)
    assert digests() == before


def test_the_tag_names_the_c_library_that_the_programs_need(wheel):
    [version] = re.findall(r"-py3-none-manylinux_2_(\d+)_x86_64\.whl$", wheel.name)
    needed = {17}
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            if content.startswith(b"\x7fELF") and b"libc.so.6" in content:
                needed |= {int(found) for found in re.findall(rb"\0GLIBC_2\.(\d+)", content)}
    assert max(needed) == int(version)


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

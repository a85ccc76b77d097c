"""libglovebox.so as somebody else's program uses it, and the shape that it must keep."""

import ctypes
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import BUILD, TOP

LIBRARY = BUILD / "libglovebox.so"


@pytest.mark.usefixtures("python_template")
@pytest.mark.parametrize("compiler", ["cc", "c++"])
def test_a_program_against_the_header(glovebox, daemon, tmp_path, compiler):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    source = pathlib.Path(__file__).with_name("library.c")
    if compiler == "c++":  # only that the header is fit for it
        source = tmp_path / "header.cc"
        source.write_text("#include <glovebox.h>\nint main() { return glb_version()[0] == 0; }\n")
    subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
                    f"-I{TOP}/include", "-o", tmp_path / "program", source, LIBRARY,
                    f"-Wl,-rpath,{BUILD}"], check=True)
    done = subprocess.run([tmp_path / "program", str(glovebox.state), daemon.path], capture_output=True,
                          env=glovebox.environment(), timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_header_names_no_later_version():
    """What it says of versions is what glb_version() gives, and an earlier one for "Since"."""
    header = (TOP / "include/glovebox.h").read_text()
    library = ctypes.CDLL(str(LIBRARY))
    library.glb_version.restype = ctypes.c_char_p
    version = library.glb_version().decode()
    assert f'The library\'s version, as "{version}".' in header
    named = re.findall(r"Since +(\d+)\.(\d+)", header)
    assert named and all((int(major), int(minor)) <= tuple(map(int, version.split(".")[:2])) for major, minor in named)


@pytest.mark.skipif(not shutil.which("nm"), reason="binutils are not installed")
def test_only_our_names_are_exported():
    names = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True,
                           check=True).stdout.split("\n")
    names = [line.split()[-1] for line in names if line]
    assert len(names) > 10
    assert all(name.startswith("glb_") and name.endswith("@@GLOVEBOX_1.0") or name == "GLOVEBOX_1.0"
               for name in names), names


def test_the_binary_interface_has_not_changed():
    if not shutil.which("abidiff"):
        pytest.skip("abigail-tools is not installed")
    done = subprocess.run(["abidiff", "--headers-dir2", TOP / "include", "--no-added-syms",
                           TOP / "tests/abi/libglovebox.abi", LIBRARY.resolve()], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout

"""libglovebox.so as an external program uses it, and its binary interface, which must not change."""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD, TOP
from serving import let_others_in

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


SESSION_WITH_A_NETWORK = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.glb_error_text.restype = ctypes.c_char_p
client, answer = ctypes.c_void_p(), ctypes.c_char_p()
assert library.glb_connect(None, 0, ctypes.byref(client)) == 0
options = (ctypes.c_char_p * 1)(b"web")
assert library.glb_session_new(client, options, ctypes.sizeof(options), ctypes.byref(answer)) != 0
print(library.glb_error_text().decode())
library.glb_close(client)
"""


@pytest.mark.usefixtures("python_template")
def test_a_session_with_a_network_needs_a_service(glovebox, tmp_path):
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/web.yaml").write_text("name: web\ntemplate: python\nlanguages: [python]\nnetwork: {allow: [a.example.org]}\n")
    let_others_in(tmp_path / "policies")
    done = subprocess.run([sys.executable, "-c", SESSION_WITH_A_NETWORK, LIBRARY], capture_output=True, text=True, timeout=60, check=False,
                          env=glovebox.environment() | {"GLOVEBOX_RUNTIME": str(tmp_path), "GLOVEBOX_SOCKET": "",
                                                        "GLOVEBOX_POLICIES": str(tmp_path / "policies")})
    assert done.stdout.startswith("policy web allows connections, which needs a running service; start one: glovebox serve"), done


@pytest.fixture(name="installed", scope="module")
def installed_(tmp_path_factory):
    """Where `make install DESTDIR=` has put everything."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", folder], check=True, capture_output=True)
    return folder


@pytest.mark.usefixtures("python_template")
@pytest.mark.parametrize(("name", "says"), [("run", "A,B"), ("session", '"42"'), ("threads", "thread 3: ")])
def test_the_examples_in_c_are_built_by_pkg_config_and_run(glovebox, daemon, installed, tmp_path, name, says):
    if not shutil.which("pkg-config"):
        pytest.skip("pkg-config is not installed")
    described = next(installed.rglob("libglovebox.pc"))
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libglovebox"], check=True, capture_output=True, text=True,
                           env={"PATH": os.environ["PATH"], "PKG_CONFIG_PATH": str(described.parent),
                                "PKG_CONFIG_SYSROOT_DIR": str(installed)}).stdout.split()
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", TOP / f"examples/c/{name}.c", "-o", tmp_path / name, "-pthread", *flags],
                   check=True)
    done = subprocess.run([tmp_path / name], capture_output=True, text=True, timeout=60, check=False,
                          env=glovebox.environment() | {"GLOVEBOX_SOCKET": daemon.path, "LD_LIBRARY_PATH": str(described.parent.parent)})
    assert done.returncode == 0 and says in done.stdout, done
    if name == "session":
        alone = subprocess.run([tmp_path / name], capture_output=True, text=True, timeout=60, check=False, env=glovebox.environment() | {
            "GLOVEBOX_RUNTIME": str(tmp_path), "GLOVEBOX_SOCKET": "", "LD_LIBRARY_PATH": str(BUILD)})
        assert alone.returncode != 0 and "start glovebox serve" in alone.stdout, alone


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

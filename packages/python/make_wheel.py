"""Makes the wheel for x86-64 Linux of the pure one: make_wheel.py BUILD PURE_WHEEL ARCHIVE TARGET_FOLDER.

It carries the programs, the shared libraries that they need but for those of the C library, and a packed template. Its
tag names the C library that these need, as their symbols say. The same input gives the same bytes."""

import base64
import csv
import hashlib
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

PROGRAMS = ["glovebox", "gloveboxd", "glovebox-egress", "glovebox-init", "glovebox-notify", "glovebox-spawner"]
DATA = ["policies", "templates", "python", "seccomp/default.bpf", "seccomp/loopback.bpf"]
C_LIBRARY = {"libc.so.6", "libm.so.6", "libresolv.so.2", "libpthread.so.0", "libdl.so.2", "librt.so.1",
             "ld-linux-x86-64.so.2"}
TIME = (2025, 1, 1, 0, 0, 0)  # of every file
BEFORE = "glovebox/_programs"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def libraries_of(program):
    """Name and place of what the loader would load for it."""
    if "NEEDED" not in output_of("objdump", "-p", str(program)):
        return {}
    found = {}
    for line in output_of("ldd", str(program)).splitlines():
        name, arrow, place = line.strip().partition(" => ")
        if arrow and "not found" in place:
            sys.exit(f"make_wheel.py: {program} needs {name}, which is not here")
        if arrow and name not in C_LIBRARY:
            found[name] = pathlib.Path(place.split(" (")[0]).resolve()
    return found


def licence_of(library):
    """What Debian says of the licence of the package that a library is of."""
    for place in (library, pathlib.Path("/", *library.parts[2:])):  # dpkg may know it as /lib/…
        done = subprocess.run(["dpkg-query", "-S", str(place)], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            package = done.stdout.split(":")[0]
            return package, pathlib.Path("/usr/share/doc", package, "copyright").read_bytes()
    return sys.exit(f"make_wheel.py: no Debian package has {library}")


def c_library_of(files):
    """The newest version of the C library that a symbol of these asks for, as (2, 34)."""
    versions = {(2, 17)}
    for file in files:
        versions |= {tuple(map(int, found.split("."))) for found in
                     re.findall(r"\bGLIBC_(\d+\.\d+)", output_of("objdump", "-T", str(file)))}
    return max(versions)


def collect(build, place):
    """Puts the programs and what they need into a folder."""
    for name in PROGRAMS:
        subprocess.run(["strip", "--strip-unneeded", "-o", place / name, build / name], check=True)
    for name in DATA:
        (place / name).parent.mkdir(exist_ok=True)
        (shutil.copytree if (build / name).is_dir() else shutil.copy)(build / name, place / name)
    for folder in ("lib", "licences"):
        (place / folder).mkdir()
    for name in PROGRAMS:
        libraries = libraries_of(build / name)
        if libraries:  # of the whole tree of libraries this one path is looked at first
            subprocess.run(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/lib", place / name], check=True)
        for library, source in libraries.items():
            package, licence = licence_of(source)
            shutil.copy(source, place / "lib" / library)
            (place / "licences" / package).write_bytes(licence)
    binaries = [place / name for name in PROGRAMS] + [*(place / "lib").iterdir(), *(place / "python").glob("*.so")]
    return "manylinux_{}_{}_x86_64".format(*c_library_of(binaries))


def contents_of(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"{BEFORE}/{path.relative_to(folder)}", path.read_bytes(), path.stat().st_mode & 0o111


def row_of(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return name, f"sha256={digest}", len(content)


def write_wheel(target, contents):
    with zipfile.ZipFile(target, "w") as wheel:
        for name, content, executable in contents:
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(".gz") else zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)


def main(build, pure, archive, folder):
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(pure) as wheel:
        place = pathlib.Path(scratch)
        tag = collect(build, place)
        shutil.copy(archive, place / archive.name)
        papers = next(name for name in wheel.namelist() if name.endswith(".dist-info/RECORD")).rpartition("/")[0]
        contents = []
        for name in sorted(wheel.namelist()):
            content = wheel.read(name)
            if name == f"{papers}/WHEEL":
                content = content.replace(b"Root-Is-Purelib: true", b"Root-Is-Purelib: false")
                content = content.replace(b"py3-none-any", f"py3-none-{tag}".encode())
            if name != f"{papers}/RECORD":
                contents.append((name, content, False))
        contents += contents_of(place)
        record = io.StringIO()
        csv.writer(record, lineterminator="\n").writerows(
            [*(row_of(name, content) for name, content, _ in contents), (f"{papers}/RECORD", "", "")])
        target = folder / pure.name.replace("none-any", f"none-{tag}")
        write_wheel(target, [*contents, (f"{papers}/RECORD", record.getvalue().encode(), False)])
    print(target)


if __name__ == "__main__":
    main(*(pathlib.Path(argument) for argument in sys.argv[1:5]))

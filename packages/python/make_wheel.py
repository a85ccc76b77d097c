"""Makes the wheel for x86-64 Linux from the pure one: make_wheel.py BUILD PURE_WHEEL ARCHIVE TARGET_FOLDER.

It contains the programs, the shared libraries that they need, including the C library and its loader, and a packed
template. A program that is not static is in the folder of libraries, and a copy of glovebox-launch has its place: so no
library of the system is loaded, whichever C library it has. The same input gives the same bytes."""

import base64
import csv
import hashlib
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

PROGRAMS = ["glovebox", "gloveboxd", "glovebox-egress", "glovebox-init", "glovebox-notify", "glovebox-spawner"]
DATA = ["policies", "templates", "python", "seccomp/default.bpf", "seccomp/loopback.bpf"]
LOADER = "ld-linux-x86-64.so.2"
# Tags that pip accepts on glibc of 2012 and later (under both of its names), and on musl.
TAGS = ["manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_1_x86_64"]
TIME = (2025, 1, 1, 0, 0, 0)  # of every file
BEFORE = "glovebox/_programs"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def libraries_of(program):
    """Names and paths of the libraries that the loader would load for a program, and of the loader; none for a static one."""
    if "NEEDED" not in output_of("objdump", "-p", str(program)):
        return {}
    found = {}
    for line in output_of("ldd", str(program)).splitlines():
        name, arrow, place = line.strip().partition(" => ")
        if arrow and "not found" in place:
            sys.exit(f"make_wheel.py: {program} needs {name}, which is not here")
        if not arrow and name.startswith("/"):
            name, place = pathlib.Path(name.split(" (")[0]).name, name
        if place:  # linux-vdso.so.1, which the kernel maps, has no path
            found[name] = pathlib.Path(place.split(" (")[0]).resolve()
    if LOADER not in found:
        sys.exit(f"make_wheel.py: {program} is not for {LOADER}")
    return found


def licence_of(library):
    """Debian's copyright file of the package that has a library."""
    for place in (library, pathlib.Path("/", *library.parts[2:])):  # dpkg may know it as /lib/…
        done = subprocess.run(["dpkg-query", "-S", str(place)], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            package = done.stdout.split(":")[0]
            return package, pathlib.Path("/usr/share/doc", package, "copyright").read_bytes()
    return sys.exit(f"make_wheel.py: no Debian package has {library}")


def collect(build, place):
    """Puts the programs and what they need into a folder."""
    for folder in ("lib", "licences"):
        (place / folder).mkdir()
    for name in PROGRAMS:
        libraries = libraries_of(build / name)
        program = place / "lib" / name if libraries else place / name
        subprocess.run(["strip", "--strip-unneeded", "-o", program, build / name], check=True)
        if libraries:  # the dependencies of all libraries are found by this path first
            subprocess.run(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/lib", program], check=True)
            subprocess.run(["strip", "--strip-all", "-o", place / name, build / "glovebox-launch"], check=True)
        for library, source in libraries.items():
            package, licence = licence_of(source)
            shutil.copy(source, place / "lib" / library)
            (place / "licences" / package).write_bytes(licence)
    for name in DATA:
        (place / name).parent.mkdir(exist_ok=True)
        (shutil.copytree if (build / name).is_dir() else shutil.copy)(build / name, place / name)


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
        collect(build, place)
        shutil.copy(archive, place / archive.name)
        papers = next(name for name in wheel.namelist() if name.endswith(".dist-info/RECORD")).rpartition("/")[0]
        contents = []
        for name in sorted(wheel.namelist()):
            content = wheel.read(name)
            if name == f"{papers}/WHEEL":
                content = content.replace(b"Root-Is-Purelib: true", b"Root-Is-Purelib: false")
                content = content.replace(b"Tag: py3-none-any\n",
                                          "".join(f"Tag: py3-none-{tag}\n" for tag in TAGS).encode())
            if name != f"{papers}/RECORD":
                contents.append((name, content, False))
        contents += contents_of(place)
        record = io.StringIO()
        csv.writer(record, lineterminator="\n").writerows(
            [*(row_of(name, content) for name, content, _ in contents), (f"{papers}/RECORD", "", "")])
        target = folder / pure.name.replace("none-any", f"none-{'.'.join(TAGS)}")
        write_wheel(target, [*contents, (f"{papers}/RECORD", record.getvalue().encode(), False)])
    print(target)


if __name__ == "__main__":
    main(*(pathlib.Path(argument) for argument in sys.argv[1:5]))

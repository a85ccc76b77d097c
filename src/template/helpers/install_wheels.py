# install_wheels.py - installs wheels into a new template, from inside it: install_wheels.py FOLDER [ORDER]. No code of a
# wheel is run: its files are checked against its RECORD and written to a folder that Python searches before Debian's
# packages. ORDER is JSON: `files`, the wheels to install, each with its sha256, and `leave_out`, patterns of paths to omit.

import base64
import collections
import configparser
import csv
import io
import sysconfig
import zipfile

BYTES_MOST = 4 << 30  # of all wheels together, as their archives state it; no entry gives more than it states
ENTRIES_MOST = 100_000
PAPER_MOST = 16 << 20
CHUNK = 1 << 20
COMMAND = """#!/usr/bin/python3
import sys
from {module} import {first}
sys.exit({call}())
"""


def refuse(wheel, text):
    give_up(f"{os.path.basename(wheel)}: {text}")


def check_tags(path):
    """Checks that the wheel is for the template's Python, which may have changed since it was fetched."""
    python, abi = path.removesuffix(".whl").split("-")[-3:-1]
    ours = f"cp{sys.version_info.major}{sys.version_info.minor}"
    pythons = python.split(".")
    if "py3" in pythons or ours in pythons or "abi3" in abi.split("."):
        return
    refuse(path, f"is for {python}, and this template has {ours}; ask for it and review it again")


def places():
    scheme = "posix_local" if "posix_local" in sysconfig.get_scheme_names() else sysconfig.get_default_scheme()
    paths = sysconfig.get_paths(scheme)
    return {"purelib": paths["purelib"], "platlib": paths["platlib"], "scripts": paths["scripts"], "data": paths["data"]}


def target_of(path, name, where):
    parts = name.split("/")
    if name.startswith("/") or "\\" in name or "\0" in name or any(part in ("", ".", "..") for part in parts):
        refuse(path, f"has a file with the name {name!r}")
    if not parts[0].endswith(".data"):
        return os.path.join(where["purelib"], *parts), False
    if len(parts) < 3 or parts[1] not in where:
        return None, False
    return os.path.join(where[parts[1]], *parts[2:]), parts[1] == "scripts"


def write(path, target, chunks, mode):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        with open(target, "xb") as file:
            for chunk in chunks:
                file.write(chunk)
    except FileExistsError:
        refuse(path, f"would write over {target}, which another package has brought")
    os.chmod(target, mode)


def read_metadata(path, wheel, name):
    if wheel.getinfo(name).file_size > PAPER_MOST:
        refuse(path, f"has a {name} of more than {PAPER_MOST >> 20} MiB")
    return wheel.read(name).decode()


def read_record(path, wheel, folder):
    text = read_metadata(path, wheel, f"{folder}/RECORD")
    return {row[0]: row[1] for row in csv.reader(io.StringIO(text)) if len(row) == 3}


def chunks_of(path, wheel, entry, record, is_script):
    """Yields a file in pieces, so that it need not fit into memory. If it does not match the record, the build fails, and
    the written part is removed with it."""
    is_listed = record is not None
    kind, _, wanted = record.get(entry.filename, "").partition("=") if is_listed else ("", "", "")
    if is_listed and kind not in ("sha256", "sha384", "sha512"):
        refuse(path, f"has no digest of {entry.filename} in its record")
    digest = hashlib.new(kind or "sha256")
    with wheel.open(entry) as file:
        chunk = file.read(CHUNK)
        digest.update(chunk)
        if is_script and chunk.startswith(b"#!python"):
            chunk = b"#!/usr/bin/python3\n" + chunk.partition(b"\n")[2]
        while chunk:
            yield chunk
            chunk = file.read(CHUNK)
            digest.update(chunk)
    found = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
    if is_listed and found != wanted.rstrip("="):
        refuse(path, f"{entry.filename} is not what its record says")


def write_commands(path, where, text):
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str
    parser.read_string(text)
    if not parser.has_section("console_scripts"):
        return
    for name, value in parser.items("console_scripts"):
        module, _, call = value.split("[")[0].replace(" ", "").partition(":")
        if not call or not all(part.isidentifier() for part in f"{module}.{call}".split(".")) or "/" in name:
            refuse(path, f"has a command that is none: {name!r}")
        text = COMMAND.format(module=module, first=call.split(".")[0], call=call)
        write(path, os.path.join(where["scripts"], name), [text.encode()], 0o755)


def install(path, where, room):
    """Returns what is left of `room`, the bytes that all wheels together may have when they are unpacked."""
    check_tags(path)
    with zipfile.ZipFile(path) as wheel:
        entries = [entry for entry in wheel.infolist() if not entry.is_dir()]
        room -= sum(entry.file_size for entry in entries)
        if room < 0 or len(entries) > ENTRIES_MOST:
            refuse(path, f"with it there are more than {BYTES_MOST >> 30} GiB or {ENTRIES_MOST} files to unpack")
        folders = {entry.filename.split("/")[0] for entry in entries if entry.filename.count("/") == 1
                   and entry.filename.endswith(".dist-info/RECORD")}
        if len(folders) != 1:
            refuse(path, "is no wheel: it has no record of its files")
        folder = folders.pop()
        record = read_record(path, wheel, folder)
        for entry in entries:
            target, is_script = target_of(path, entry.filename, where)
            is_record = entry.filename.startswith(f"{folder}/RECORD")
            chunks = chunks_of(path, wheel, entry, None if is_record else record, is_script)
            if target and not is_left_out(target):
                write(path, target, chunks, 0o755 if is_script or entry.external_attr >> 16 & 0o111 else 0o644)
            else:
                collections.deque(chunks, maxlen=0)
        if f"{folder}/entry_points.txt" in wheel.namelist():
            write_commands(path, where, read_metadata(path, wheel, f"{folder}/entry_points.txt"))
    return room


order = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {"files": dict.fromkeys(os.listdir(sys.argv[1])), "leave_out": []}
is_left_out = left_out(order["leave_out"])
left = BYTES_MOST
for number, (name, wanted) in enumerate(sorted(order["files"].items())):
    print(f"unpacking wheels, {number} of {len(order['files'])}", file=sys.stderr, flush=True)
    if wanted and digest_of(os.path.join(sys.argv[1], name)) != wanted:
        refuse(name, "is not the archive that was fetched")
    left = install(os.path.join(sys.argv[1], name), places(), left)

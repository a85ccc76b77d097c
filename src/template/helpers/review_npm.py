# review_npm.py - finds out what a package of npm is before anybody installs it: review_npm.py MANIFEST FOLDER NAME VERSION.
# Runs apart from the host, with its npm and the operator's configuration. Archives are fetched and read, nothing of them is run.

import base64
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse
import zlib

LINE_MOST = 300
PAPER_MOST = 1 << 20
ENTRIES_MOST = 100_000
UNPACKED_MOST = 512 << 20
KINDS = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE)
SCRIPTS = ("preinstall", "install", "postinstall")
CPUS = {"x86_64": "x64", "aarch64": "arm64"}


def plain(text):
    """One line that no terminal obeys."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in str(text or "")).split())[:LINE_MOST]


def give_up(text):
    print(text, file=sys.stderr)
    sys.exit(1)


def run_npm(*words):
    done = subprocess.run(["npm", *words, "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier",
                           "--fetch-retries=1", "--fetch-timeout=20000"], capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        said = [re.sub(r"^npm (ERR!|error)\s*", "", line) for line in done.stderr.splitlines()
                if re.match(r"npm (ERR!|error) ", line)]
        said = [line for line in said if line.strip() and not re.match(r"(code|A complete log|\s*/)", line)] or ["no word"]
        give_up("npm: " + plain(re.sub(r"//[^/@\s]*@", "//", said[0])))
    return done.stdout


def fits(entry):
    """Some packages bring an archive for each kind of machine."""
    def allows(listed, ours):
        refused = [one[1:] for one in listed if one.startswith("!")]
        return ours not in refused and (len(refused) == len(listed) or ours in listed)
    return allows(entry.get("os", []), "linux") and allows(entry.get("cpu", []), CPUS.get(platform.machine(), platform.machine()))


def places_of(lock):
    """Where each package lies, as npm has resolved it: "left", "@a/b", "left/node_modules/pad"."""
    found = []
    for place, entry in sorted(lock["packages"].items()):
        if not place or entry.get("link") or not fits(entry):
            continue
        name = place.rpartition("node_modules/")[2]
        package, version = entry.get("name", name), entry.get("version", "")
        for one in (name, package):
            if not re.fullmatch(r"(@[a-z0-9][a-z0-9._-]*/)?[a-zA-Z0-9][a-zA-Z0-9._-]*", one) or len(one) > 120:
                give_up(f"npm wants {plain(one)}, which is no name of a package")
        if not re.fullmatch(r"[0-9][0-9a-zA-Z.+-]{0,99}", version):
            give_up(f"npm wants {package} {plain(version)}, which is no version")
        found.append((place.removeprefix("node_modules/"), package, entry))
    return found


def read_entries(label, content):
    """What lies below the archive's one folder: name to (executable?, bytes), None for a folder. What cannot be read to its
    end is refused: tarfile ends without a word at a header that it does not understand."""
    entries, count = {}, 0
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
        unpacked = packed.read(UNPACKED_MOST + 1)
    if len(unpacked) > UNPACKED_MOST:
        give_up(f"{label} has more than {UNPACKED_MOST >> 20} MiB in it")
    with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:", encoding="utf-8") as archive:
        for entry in archive:
            parts, count = entry.name.split("/"), count + 1
            is_plain = entry.type in KINDS and not entry.issparse() and entry.size >= 0
            if not is_plain or entry.name.startswith("/") or ".." in parts or "\0" in entry.name:
                give_up(f"{label} has {plain(entry.name)}, which is not a file of its own folder")
            if count > ENTRIES_MOST:
                give_up(f"{label} has more than {ENTRIES_MOST} files")
            name = "/".join(part for part in parts[1:] if part not in ("", "."))
            if entry.isdir() and name:
                entries.setdefault(name)
            elif name in entries:
                give_up(f"{label} has {plain(entry.name)} twice")
            elif name:
                entries[name] = (bool(entry.mode & 0o100), archive.extractfile(entry).read())
        if unpacked[archive.offset:].strip(b"\0"):
            give_up(f"{label} goes on behind its last entry that can be read")
    return entries


def read_archive(path, content):
    """Its entries and the package's own paper."""
    label = plain(os.path.basename(path))
    try:
        entries = read_entries(label, content)
        _, text = entries.get("package.json") or (False, b"{}")
        paper = json.loads(text) if len(text) <= PAPER_MOST else {}
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, RecursionError) as cause:
        give_up(f"{label} cannot be read: {plain(cause)}")
    return entries, paper if isinstance(paper, dict) else {}


def write_archive(path, entries):
    """The archive that is approved and built: what was read and nothing else, in headers that every tar reads alike. The
    same entries give the same bytes."""
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as archive:
        for name in sorted(entries):
            entry = tarfile.TarInfo(f"package/{name}")
            executable, content = entries[name] or (True, b"")
            entry.mode, entry.size = 0o755 if executable else 0o644, len(content)
            entry.type = tarfile.REGTYPE if entries[name] else tarfile.DIRTYPE
            archive.addfile(entry, io.BytesIO(content))


def check_integrity(path, content, wanted):
    """What the registry has said about the archive, as npm keeps it: "sha512-BASE64"."""
    kind, _, digest = (wanted or "").split(" ")[0].partition("-")
    if kind in ("sha512", "sha384", "sha256", "sha1") and base64.b64encode(hashlib.new(kind, content).digest()).decode() == digest:
        return
    give_up(f"{plain(os.path.basename(path))} is not what its registry says of it")


def text_of(value, *keys):
    for key in keys:
        value = value.get(key, "") if isinstance(value, dict) else value
    return plain(value if isinstance(value, str) else "")


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


def look_into(path, place, package, entry):
    content = read_file(path)
    check_integrity(path, content, entry.get("integrity"))
    entries, paper = read_archive(path, content)
    if (paper.get("name"), paper.get("version")) != (package, entry["version"]):
        give_up(f"{plain(os.path.basename(path))} says that it is {plain(paper.get('name')) or 'nothing'} "
                f"{plain(paper.get('version'))}, and npm has asked for {package} {entry['version']}")
    write_archive(path, entries)
    content = read_file(path)
    commands = paper.get("bin", {})
    if isinstance(commands, str):
        commands = {package.rpartition("/")[2]: commands}
    scripts = paper.get("scripts") or {}
    people = paper.get("author") or (paper.get("maintainers") or [""])[0]
    return {
        "name": package, "version": entry["version"], "file": os.path.basename(path), "place": place,
        "bytes": len(content), "unpacked": sum(len(entry[1]) for entry in entries.values() if entry),
        "sha256": hashlib.sha256(content).hexdigest(),
        "integrity": plain(entry["integrity"]), "licence": text_of(paper.get("license"), "type"),
        "maintainer": text_of(people, "name"), "about": text_of(paper.get("description")),
        "needs": [plain(f"{name} {wanted}") for name, wanted in (paper.get("dependencies") or {}).items()][:50],
        "commands": [], "machine_code": any(name.endswith(".node") for name in entries), "runs_at_install": [],
        "runs_at_start": [],
        "not_run": [one for one in SCRIPTS if one in scripts] + ["node-gyp"] * ("binding.gyp" in entries)
                   + [f"command {plain(command)}" for command in commands][:50],
    }


def main():
    manifest_path, folder, name, version = sys.argv[1:5]
    with open(manifest_path, encoding="utf-8") as file:
        node = next((one["version"] for one in json.load(file)["packages"] if one["name"] == "nodejs"), "")
    if not node:
        give_up("this template has no nodejs; ask for a template that has: --template node")
    if not shutil.which("npm"):
        give_up("this machine has no npm; as root: apt install npm")
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        with open("package.json", "w", encoding="utf-8") as file:
            file.write('{"name": "review", "version": "1.0.0", "private": true}')
        run_npm("install", "--package-lock-only", "--omit=dev", f"{name}@{version}" if version else name)
        with open("package-lock.json", encoding="utf-8") as file:
            places = places_of(json.load(file))
        registry = urllib.parse.urlsplit(run_npm("config", "get", "registry").strip())
        files = []
        for place, package, entry in places:
            packed = json.loads(run_npm("pack", "--json", "--pack-destination", scratch, f"{package}@{entry['version']}"))[0]
            short = package.replace("@", "").replace("/", "-")  # numbered: @a/b and a-b would have one name
            archive = f"{len(files) + 1}-{short[:60]}-{entry['version'][:40]}.tgz"
            shutil.move(os.path.join(scratch, os.path.basename(packed["filename"])), os.path.join(folder, archive))
            files.append(look_into(os.path.join(folder, archive), place, package, entry))
        os.chdir("/")
    files.sort(key=lambda one: (one["place"] != name, one["place"]))
    print(json.dumps({"source": f"{registry.scheme}://{registry.netloc.rpartition('@')[2]}{registry.path}",
                      "for": f"Node.js {plain(node)}", "replaces": "", "files": files}))


main()

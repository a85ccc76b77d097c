# review_pip.py - finds out what a Python package is before anybody installs it: review_pip.py MANIFEST FOLDER NAME VERSION.
# Runs on the host with the operator's own pip and its configuration. Wheels only: they are read, nothing of them is run.
# What the template has already stands there as empty wheels, so that only what is missing comes from the index.

import email.parser
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse
import zipfile

LINE_MOST = 300
PAPER_MOST = 1 << 20
ENTRIES_MOST = 100_000
VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9.]+)?")
IN_TEMPLATE = "template"


def plain(text):
    """One line that no terminal obeys."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in str(text or "")).split())[:LINE_MOST]


def give_up(text):
    print(text, file=sys.stderr)
    sys.exit(1)


def same(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def write_stub(folder, name, version):
    name = same(name).replace("-", "_")
    papers = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(os.path.join(folder, f"{name}-{version}-py3-none-any.whl"), "w") as wheel:
        wheel.writestr(f"{papers}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{papers}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{papers}/RECORD", "")


def write_stubs(folder, inside, asked):
    rows = []
    for name, version in inside.items():
        if name == asked or not VERSION.fullmatch(version):
            continue
        version += ("." if "+" in version else "+") + IN_TEMPLATE
        write_stub(folder, name, version)
        rows.append(f"{name}=={version}\n")
    with open(os.path.join(folder, "constraints.txt"), "w", encoding="utf-8") as file:
        file.writelines(rows)


def run_pip(*words):
    return subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, check=False)


def indexes_in(said):
    """The indexes that pip says it asks, without name, password and token."""
    listed = re.search(r"^Looking in indexes: (.*)$", said, re.MULTILINE)
    parts = [urllib.parse.urlsplit(plain(one)) for one in (listed.group(1).split(",") if listed else [])]
    found = ", ".join(f"{one.scheme}://{one.netloc.rpartition('@')[2]}{one.path}" for one in parts)
    return found or "the index that pip asks where none is configured"


def why_not(said, name, version):
    if "No module named pip" in said:
        return "this machine's python3 has no pip; as root: apt install python3-pip"
    if "No matching distribution" in said:
        wanted = f"{name} {version}" if version else name
        return (f"the index has no wheel of {wanted} for this template, or for what it depends on; a source archive is not "
                f"taken: it runs its author's code when it is installed")
    errors = [line for line in said.splitlines() if line.startswith("ERROR: ")] or said.splitlines() or ["no word"]
    return "pip: " + plain(errors[-1].removeprefix("ERROR: "))


def paper(wheel, ending):
    """A file of the dist-info folder, None if there is none."""
    for entry in wheel.infolist():
        if re.fullmatch(r"[^/]+\.dist-info/" + re.escape(ending), entry.filename) and entry.file_size <= PAPER_MOST:
            return wheel.read(entry).decode("utf-8", "replace")
    return None


def licence_of(papers):
    listed = [one.rpartition("::")[2].strip() for one in papers.get_all("Classifier", []) if one.startswith("License ::")]
    return plain(papers.get("License-Expression") or ", ".join(listed) or papers.get("License"))


def look_into(path):
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else \
            hashlib.sha256(file.read()).hexdigest()
    with zipfile.ZipFile(path) as wheel:
        names = [entry.filename for entry in wheel.infolist()]
        if len(names) > ENTRIES_MOST:
            give_up(f"{plain(os.path.basename(path))} has more than {ENTRIES_MOST} files")
        papers = email.parser.HeaderParser().parsestr(paper(wheel, "METADATA") or "")
        commands = re.findall(r"^([\w.-]+)\s*=", (paper(wheel, "entry_points.txt") or "").partition("[console_scripts]")[2]
                              .partition("\n[")[0], re.MULTILINE)
    return {
        "name": plain(papers.get("Name")), "version": plain(papers.get("Version")), "file": os.path.basename(path),
        "bytes": os.path.getsize(path), "sha256": digest, "licence": licence_of(papers),
        "maintainer": plain(papers.get("Maintainer") or papers.get("Maintainer-email") or papers.get("Author")
                            or papers.get("Author-email")),
        "about": plain(papers.get("Summary")),
        "needs": [plain(need) for need in papers.get_all("Requires-Dist", []) if "extra ==" not in need][:50],
        "commands": [plain(command) for command in commands][:50],
        "machine_code": any(name.endswith(".so") or ".so." in name for name in names),
        "runs_at_install": [],
        "runs_at_start": sorted(plain(name) for name in names
                                if re.fullmatch(r"(.*\.data/(pure|plat)lib/)?[^/]+(\.pth|customize\.py)", name)),
    }


def main():
    manifest_path, folder, name, version = sys.argv[1:5]
    with open(manifest_path, encoding="utf-8") as file:
        manifest = json.load(file)
    inside = {same(one["name"]): one["version"] for one in manifest.get("python", [])}
    python = next((one["version"] for one in manifest["packages"] if one["name"] == "python3"), "")
    if not re.match(r"3\.\d+", python):
        give_up("this template has no python3; ask for a template that has")
    python = re.match(r"3\.\d+", python).group()
    with tempfile.TemporaryDirectory() as stubs:
        os.chdir(stubs)
        write_stubs(stubs, inside, same(name))
        done = run_pip("download", "--disable-pip-version-check", "--no-input", "--no-cache-dir", "--only-binary=:all:",
                       "--retries=1", "--timeout=20", "--python-version", python, "--find-links", stubs, "--constraint",
                       os.path.join(stubs, "constraints.txt"), "--dest", folder, f"{name}=={version}" if version else name)
        os.chdir("/")
    if done.returncode != 0:
        give_up(why_not(done.stdout + done.stderr, name, version))
    files = []
    for entry in sorted(os.listdir(folder)):
        path = os.path.join(folder, entry)
        if entry.endswith(f"{IN_TEMPLATE}-py3-none-any.whl"):
            os.unlink(path)
        elif entry.endswith(".whl"):
            files.append(look_into(path))
    files.sort(key=lambda one: (same(one["name"]) != same(name), one["file"]))
    replaces = inside.get(same(name), "")
    print(json.dumps({"source": indexes_in(done.stdout), "for": f"Python {python}", "replaces": replaces, "files": files}))


main()

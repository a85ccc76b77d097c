# review_pip.py - examines a Python package before it is installed: review_pip.py MANIFEST FOLDER NAME VERSION. Runs confined,
# with the host's pip and the operator's configuration. Follows pip_resolution.py.

ENTRIES_MOST = 100_000
UNPACKED_MOST = 4 << 30
# The last two are asked for by Debian's own sitecustomize and by the .pth file of its setuptools.
AT_START = ("sitecustomize", "usercustomize", "apport_python_hook", "_distutils_hack")

def licence_of(metadata):
    listed = [one.rpartition("::")[2].strip() for one in metadata.get_all("Classifier", []) if one.startswith("License ::")]
    return plain(metadata.get("License-Expression") or ", ".join(listed) or metadata.get("License"))


def runs_at_start(name):
    """Does Python run it at each start? It reads .pth files in its package folders, and imports some names, as a file, a
    folder or machine code. A wheel may have them among its modules, or in the folder that is copied to /usr/local."""
    parts = name.split("/")
    is_data = parts[0].endswith(".data") and parts[1:2] == ["data"]
    if parts[0].endswith(".data"):
        parts = parts[2:]
    customizes = [part.split(".")[0] in AT_START for part in parts]
    has_pth = parts[-1:] != [] and parts[-1].endswith(".pth")
    return any(customizes) or has_pth if is_data else any(customizes[:1]) or (has_pth and len(parts) == 1)


def scripts_in(names):
    return [name.rpartition("/")[2] for name in names if re.fullmatch(r"[^/]+\.data/(scripts|data/s?bin)/[^/]+", name)]


def look_into(path):
    with zipfile.ZipFile(path) as wheel:
        names = [entry.filename for entry in wheel.infolist()]
        if len(names) > ENTRIES_MOST:
            give_up(f"{plain(os.path.basename(path))} has more than {ENTRIES_MOST} files")
        unpacked = sum(entry.file_size for entry in wheel.infolist())
        if unpacked > UNPACKED_MOST:
            give_up(f"{plain(os.path.basename(path))} is larger than {UNPACKED_MOST >> 30} GiB when it is unpacked")
        metadata = email.parser.HeaderParser().parsestr(metadata_file(wheel, "METADATA") or "")
        commands = re.findall(r"^([\w.-]+)\s*=", (metadata_file(wheel, "entry_points.txt") or "").partition("[console_scripts]")[2]
                              .partition("\n[")[0], re.MULTILINE)
    return {
        "name": plain(metadata.get("Name")), "version": plain(metadata.get("Version")), "file": os.path.basename(path),
        "bytes": os.path.getsize(path), "unpacked": unpacked, "sha256": digest_of(path), "licence": licence_of(metadata),
        "maintainer": plain(metadata.get("Maintainer") or metadata.get("Maintainer-email") or metadata.get("Author")
                            or metadata.get("Author-email")),
        "about": plain(metadata.get("Summary")),
        "needs": [plain(need) for need in metadata.get_all("Requires-Dist", []) if "extra ==" not in need][:50],
        "commands": [plain(command) for command in commands + scripts_in(names)][:50],
        "machine_code": any(name.endswith(".so") or ".so." in name for name in names),
        "runs_at_install": [],
        "runs_at_start": sorted(plain(name) for name in names if runs_at_start(name)),
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
    replaces = inside.pop(same(name), "")
    resolution = Resolution(folder, python, inside)
    resolution.resolve(requirement_of(f"{name}=={version}" if version else name, "the request"))
    files = [look_into(path) for path, _ in resolution.fetched.values()]
    files.sort(key=lambda one: (same(one["name"]) != same(name), one["file"]))
    print(json.dumps({"source": indexes_in(resolution.said), "for": f"Python {python}", "replaces": replaces,
                      "files": files}))


main()

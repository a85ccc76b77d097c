# review_npm.py - examines a package of npm before it is installed: review_npm.py MANIFEST FOLDER NAME VERSION. Follows
# npm_packages.py.


def write_archive(path, entries):
    """Writes the archive that is approved and built. The same entries give the same bytes."""
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as archive:
        add_entries(archive, "package", entries)


def mapping(value):
    """The value if it is a mapping, else an empty one: npm accepts anything there."""
    return value if isinstance(value, dict) else {}


def text_of(value, *keys):
    for key in keys:
        value = value.get(key, "") if isinstance(value, dict) else value
    return plain(value if isinstance(value, str) else "")


def look_into(path, place, package, entry):
    entries, package_json = read_package(path, package, entry["version"], entry.get("integrity"))
    write_archive(path, entries)
    commands, author = package_json.get("bin"), package_json.get("author") or package_json.get("maintainers")
    commands = {package.rpartition("/")[2]: commands} if isinstance(commands, str) else mapping(commands)
    author = author[0] if isinstance(author, list) and author else author
    return {
        "name": package, "version": entry["version"], "file": os.path.basename(path), "place": place,
        "bytes": os.path.getsize(path), "unpacked": sum(len(entry[1]) for entry in entries.values() if entry),
        "sha256": digest_of(path),
        "integrity": plain(entry["integrity"]), "licence": text_of(package_json.get("license"), "type"),
        "maintainer": text_of(author, "name"), "about": text_of(package_json.get("description")),
        "needs": [plain(f"{name} {wanted}") for name, wanted in mapping(package_json.get("dependencies")).items()][:50],
        "commands": [], "machine_code": any(name.endswith(".node") for name in entries), "runs_at_install": [],
        "runs_at_start": [],
        "not_run": [one for one in SCRIPTS if one in mapping(package_json.get("scripts"))]
                   + ["node-gyp"] * ("binding.gyp" in entries) + [f"command {plain(command)}" for command in commands][:50],
    }


def main():
    manifest_path, folder, name, version = sys.argv[1:5]
    with open(manifest_path, encoding="utf-8") as file:
        node = next((one["version"] for one in json.load(file)["packages"] if one["name"] == "nodejs"), "")
    if not node:
        give_up("this template has no nodejs; ask for a template that has: --template node")
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        places = [row for row in resolve([f"{name}@{version}" if version else name]) if THIS_MACHINE in machines_of(row[2])]
        registry = urllib.parse.urlsplit(run_npm("config", "get", "registry").strip())
        fetched, files = dict(fetch(dict.fromkeys((package, entry["version"]) for _, package, entry in places))), []
        for place, package, entry in places:
            short = package.replace("@", "").replace("/", "-")  # numbered: @a/b and a-b would have one name
            archive = os.path.join(folder, f"{len(files) + 1}-{short[:60]}-{entry['version'][:40]}.tgz")
            shutil.copy(fetched[package, entry["version"]], archive)
            files.append(look_into(archive, place, package, entry))
        os.chdir("/")
    files.sort(key=lambda one: (one["place"] != name, one["place"]))
    print(json.dumps({"source": f"{registry.scheme}://{registry.netloc.rpartition('@')[2]}{registry.path}",
                      "for": f"Node.js {plain(node)}", "replaces": "", "files": files}))


main()

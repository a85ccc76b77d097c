# fetch_npm.py - fetches the packages of npm that a recipe lists, and what they need: fetch_npm.py REQUEST FOLDER. Follows
# npm_packages.py. With a lock nothing is resolved. FOLDER is kept from build to build: it has each archive under its SHA-512,
# and packages.tar with the files of all packages at their paths.

BYTES_MOST = 4 << 30
FILES_MOST = 300_000
TOP = "usr/local/lib/node_modules"
INTEGRITY = r"sha512-[A-Za-z0-9+/]{86}=="
COMPILES = re.compile(r"node-gyp|node-pre-gyp|prebuild|cmake-js|napi|\bneon\b|electron-rebuild")


def read_rows(text, wanted):
    """Rows PLACE NAME@VERSION INTEGRITY [MACHINE,...] as {"place", "name", ...}; None if it was made for another list."""
    if head_of(wanted) not in text.splitlines():
        return None
    rows = []
    for line in text.splitlines():
        row = re.fullmatch(r"(?P<place>\S+) (?P<name>@?[^@\s]+)@(?P<version>\S+) "
                           rf"(?P<integrity>{INTEGRITY})(?: (?P<machines>\S+))?", line)
        if row and re.fullmatch(r"(@?[\w.-]+/)*[\w.-]+", row["place"]) and not {".", ".."} & set(row["place"].split("/")):
            check_name(row["name"], row["version"])
            rows.append({**row.groupdict(), "machines": (row["machines"] or THIS_MACHINE).split(",")})
        elif line.strip() and not line.startswith("#"):
            give_up(f"the lock has a line that pins nothing: {plain(line)}; remove the lock, and the next build writes it anew")
    return rows


def key_of(row):
    return row["name"], row["version"]


def file_of(integrity):
    """The file name of an archive by its integrity; None if that is not SHA-512, as for old packages."""
    return base64.b64decode(integrity[7:]).hex() + ".tgz" if re.fullmatch(INTEGRITY, integrity) else ""


def fetch_missing(rows, folder, is_locked, offline):
    missing = {key_of(row): row for row in rows if not os.path.isfile(os.path.join(folder, file_of(row["integrity"]) or "none"))}
    if missing and offline:
        name, version = next(iter(missing))
        give_up(f"{len(missing)} of {len(rows)} packages of npm are not in the cache, {name} {version} is one of them; build it "
                f"once without --offline")
    for key, path in fetch(missing) if missing else ():
        digest = digest_of(path, "sha512")
        found = "sha512-" + base64.b64encode(bytes.fromhex(digest)).decode()
        if is_locked and found != missing[key]["integrity"]:
            give_up(f"the registry has other archives than the lock names: {key[0]} {key[1]}; remove the lock to have it "
                    f"written anew, if you trust the registry")
        read_package(path, *key, missing[key]["integrity"])
        os.rename(path, os.path.join(folder, f"{digest}.tgz"))
        for row in rows:
            row["integrity"] = found if key_of(row) == key else row["integrity"]


def has_to_be_compiled(entries, package_json):
    scripts = package_json.get("scripts") if isinstance(package_json.get("scripts"), dict) else {}
    return not any(name.endswith(".node") for name in entries) and (
        "binding.gyp" in entries or any(COMPILES.search(str(scripts.get(one, ""))) for one in SCRIPTS))


def write_packages(rows, folder, is_left_out):
    """Returns the written rows: not the optional ones that would have to be compiled, or are for another C library."""
    taken, names, room = [], set(), BYTES_MOST
    with tarfile.open(os.path.join(folder, "packages.tar"), "w", format=tarfile.GNU_FORMAT, encoding="utf-8") as archive:
        for number, row in enumerate(rows):
            print(f"reading packages of npm, {number} of {len(rows)}", file=sys.stderr, flush=True)
            entries, package_json = read_package(os.path.join(folder, file_of(row["integrity"])), *key_of(row), row["integrity"])
            if row.get("optional") and (has_to_be_compiled(entries, package_json) or not has_our_libc(package_json)):
                continue
            if has_to_be_compiled(entries, package_json):
                give_up(f"{row['name']} {row['version']} has to be compiled or fetched by its install script, which is not run "
                        f"here; list one that ships its binary for linux-{THIS_MACHINE}, or install it in a session whose "
                        f"policy has network: {{sets: [npm]}}")
            place = f"{TOP}/{row['place']}"
            entries = {name: entry for name, entry in entries.items() if not is_left_out(f"{place}/{name}")}
            room -= sum(len(entry[1]) for entry in entries.values() if entry)
            brought = {f"{place}/{name}" for name, entry in entries.items() if entry}
            if names & brought:
                give_up(f"{row['name']} {row['version']} has {plain(min(names & brought))}, which another package has brought")
            names |= brought
            if room < 0 or len(names) > FILES_MOST:
                give_up(f"the packages of npm have more than {BYTES_MOST >> 30} GiB or {FILES_MOST} files")
            add_entries(archive, place, entries)
            taken.append(row)
    if name := below_a_file(names, names | {f"{TOP}/{row['place']}" for row in taken}):
        give_up(f"{plain(name)} lies below a file that another package has brought")
    return taken


def lock_of(wanted, rows, total):
    listed = [" ".join([row["place"], f"{row['name']}@{row['version']}", row["integrity"]]
                       + [",".join(row["machines"])] * (len(row["machines"]) < len(MACHINES))) for row in rows]
    return lock_text("Packages of npm, each at its place, pinned by version and SHA-512", wanted, total, listed)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    folder, wanted = sys.argv[2], request["wanted"]
    for name in os.listdir(folder):  # remove files of an interrupted build, and those that do not fit their name
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif name != f"{digest_of(path, 'sha512')}.tgz":
            os.unlink(path)
    rows, lock = read_rows(request["lock"], wanted), ""
    is_locked = rows is not None
    if not is_locked and request["offline"]:
        give_up("there is no lock for this list, and without the registry it cannot be resolved; build it once without --offline")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        os.chdir(scratch)
        rows = rows if is_locked else [
            {"place": place, "name": package, "version": entry["version"], "machines": machines_of(entry),
             "integrity": plain(entry.get("integrity")).split(" ")[0], "optional": bool(entry.get("optional"))}
            for place, package, entry in resolve(wanted)]
        ours = [row for row in rows if THIS_MACHINE in row["machines"]]
        fetch_missing(ours, folder, is_locked, request["offline"])
        os.chdir("/")
    taken = write_packages(ours, folder, left_out(request["leave_out"]))
    if not is_locked:
        total = sum(os.path.getsize(os.path.join(folder, file)) for file in {file_of(row["integrity"]) for row in taken})
        left = {row["place"] for row in ours} - {row["place"] for row in taken}
        rows = [row for row in rows if row["place"] not in left and file_of(row["integrity"])]
        lock = lock_of(wanted, rows, total)
    named = {file_of(row["integrity"]) for row in rows} | {"packages.tar"}
    for name in os.listdir(folder):
        if name not in named:
            os.unlink(os.path.join(folder, name))
    print(json.dumps({"lock": lock, "files": [{"name": row["name"], "version": row["version"]} for row in taken]}))


main()

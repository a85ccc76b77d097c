# npm_packages.py - resolves and fetches packages of npm, and reads their archives: review_npm.py and fetch_npm.py begin with
# it. Runs confined, with the host's npm and the operator's configuration. No code of the archives is run.

import base64
import gzip
import io
import platform
import resource
import shutil
import subprocess
import tarfile
import tempfile
import urllib.parse
import zlib

PACKAGE_JSON_MOST = 1 << 20
PACKAGES_MOST = 2000
ENTRIES_MOST = 100_000
UNPACKED_MOST = 512 << 20
NAME_MOST, PART_MOST = 1000, 255  # characters of a path, bytes between its slashes
MEMORY_MOST = 2 << 30  # of npm
SECONDS_MOST = 600     # that one npm may take
BATCH = 40             # packages that one npm fetches
KINDS = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE)
MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
THIS_MACHINE = MACHINES.get(platform.machine(), platform.machine())
SCRIPTS = ("preinstall", "install", "postinstall")
NO_WAY = ("ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT", "ECONNRESET", "ENETUNREACH", "EHOSTUNREACH",
          "ERR_SOCKET_TIMEOUT", "Socket timeout", "network timeout")


def why_npm_failed(said):
    """npm's first message about the cause, without passwords of registries."""
    lines = [re.sub(r"^npm (ERR!|error)\s*", "", line) for line in said.splitlines() if re.match(r"npm (ERR!|error) ", line)]
    if any(code in line for code in NO_WAY for line in lines[:4]):
        return "the registry cannot be reached; check the network and npm's settings (npm config list)"
    if any("git" in line for line in lines[:4]) and "/bin/false" in said:
        return "one of them comes from a repository of Git; only packages of the registry are taken"
    if any(line.startswith("enoent") and "package.json" in line for line in lines):  # until npm 9
        return "one of them lies in a folder; only packages of the registry are taken"
    lines = [line for line in lines if line.strip() and
             not re.match(r"(code|errno|syscall|path|type|A complete log|\s*/)", line)] or ["no word"]
    return plain(re.sub(r"//[^/@\s]*@", "//", lines[0]))


def run_npm(*words):
    """Runs npm without scripts of packages, and without git, which would fetch packages from URLs and run their scripts."""
    if not shutil.which("npm"):
        give_up("this machine has no npm; as root: apt install npm")
    patience = [] if any(name.lower() == "npm_config_fetch_timeout" for name in os.environ) else ["--fetch-timeout=20000"]
    words = ["npm", *patience, "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries=1",
             "--fetch-retry-mintimeout=1000", "--git=/bin/false", *words]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False,
                              timeout=SECONDS_MOST,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MOST, MEMORY_MOST)))
    except subprocess.TimeoutExpired:
        give_up(f"npm: the registry has not answered in {SECONDS_MOST // 60} minutes")
    if done.returncode < 0 or "heap out of memory" in done.stderr:
        give_up(f"npm: the registry's answer is too large: npm needs more than {MEMORY_MOST >> 30} GiB of memory for it")
    if done.returncode != 0:
        give_up("npm: " + why_npm_failed(done.stderr))
    return done.stdout


def allows(listed, ours):
    """Matches `os`, `cpu` and `libc` as npm does: a word or a list; "!win32" matches all others, "any" alone matches all."""
    listed = [listed] if isinstance(listed, str) else listed or []
    refused = [one[1:] for one in listed if one.startswith("!")]
    return listed == ["any"] or ours not in refused and (len(refused) == len(listed) or ours in listed)


def has_our_libc(entry):
    """Is it for glibc, by npm's lock file (which npm 9 does not fill in) or by package.json?"""
    listed = entry.get("libc")
    is_read = isinstance(listed, str) or (isinstance(listed, list) and all(isinstance(one, str) for one in listed))
    return allows(listed if is_read else None, "glibc")


def machines_of(entry):
    """The machines that it is for: some packages have an archive for each kind."""
    if not allows(entry.get("os"), "linux") or not has_our_libc(entry):
        return []
    return [machine for machine in MACHINES.values() if allows(entry.get("cpu"), machine)]


def check_name(name, version):
    if not re.fullmatch(r"(@[a-z0-9][a-z0-9._-]*/)?[a-zA-Z0-9][a-zA-Z0-9._-]*", name) or len(name) > 120:
        give_up(f"npm wants {plain(name)}, which is no name of a package")
    if not isinstance(version, str) or not re.fullmatch(r"[0-9][0-9a-zA-Z.+-]{0,99}", version):
        give_up(f"npm wants {name} {plain(version)}, which is no version")


def check_needs(package, entry):
    """Refuses dependencies on a URL or a folder, which are not in the registry."""
    for kind in ("dependencies", "optionalDependencies", "peerDependencies"):
        needs = entry.get(kind) or {}
        if not isinstance(needs, dict):
            give_up(f"{package} has {kind} that are no names with versions: {plain(needs)}")
        for name, wanted in needs.items():
            if re.search(r"[:/]", re.sub(r"^npm:(@[^/]+/)?", "", str(wanted))):
                give_up(f"{package} needs {plain(name)} from an address, {plain(re.sub(r'//[^/@]*@', '//', str(wanted)))}; only "
                        f"packages of the registry are taken")


def places_of(lock):
    """The path of each package, as npm has resolved it: "left", "@a/b", "left/node_modules/pad". Packages that are bundled
    in the archive of another have no row."""
    found, entries = [], sorted(lock["packages"].items())
    for place, entry in entries:
        check_needs(plain(entry.get("name", place.rpartition("node_modules/")[2])), entry)
    for place, entry in entries:
        if not place or entry.get("link") or entry.get("inBundle") or not machines_of(entry):
            continue
        name = place.rpartition("node_modules/")[2]
        package = entry.get("name", name)
        check_name(name, entry.get("version"))
        check_name(package, entry.get("version"))
        found.append((place.removeprefix("node_modules/"), package, entry))
    if len(found) > PACKAGES_MOST:
        give_up(f"npm wants {len(found)} packages, with what they need; at most {PACKAGES_MOST} are taken")
    return found


def resolve(wanted):
    """Has npm resolve the packages, in the current folder."""
    with open("package.json", "w", encoding="utf-8") as file:
        file.write('{"name": "review", "version": "1.0.0", "private": true}')
    run_npm("install", "--package-lock-only", "--omit=dev", "--", *wanted)
    with open("package-lock.json", encoding="utf-8") as file:
        return places_of(json.load(file))


def fetch(packages):
    """Fetches (package, version), many with one npm, and yields each with its file. @a/b and a-b have the same file name."""
    batches, done = [], 0
    for package, version in packages:
        file = f"{package.replace('@', '').replace('/', '-')}-{version}.tgz"
        if not batches or file in batches[-1] or len(batches[-1]) == BATCH:
            batches.append({})
        batches[-1][file] = (package, version)
    for number, batch in enumerate(batches):
        print(f"packages of npm, {done} of {len(packages)}", file=sys.stderr, flush=True)
        os.mkdir(f"batch-{number}")
        run_npm("pack", "--json", "--pack-destination", f"batch-{number}", "--",
                *(f"{name}@{version}" for name, version in batch.values()))
        for file, key in batch.items():
            yield key, os.path.abspath(os.path.join(f"batch-{number}", file))
        done += len(batch)


def below_a_file(files, names):
    """A name that uses one of these files as a folder; None if there is none."""
    return next((name for name in names for end, sign in enumerate(name) if sign == "/" and name[:end] in files), None)


def read_entries(label, content):
    """The entries below the archive's only folder: name to (executable?, bytes), None for a folder. An archive that cannot be
    read to its end is refused: tarfile stops without an error at a header that it does not understand."""
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
            if len(entry.name) > NAME_MOST or any(len(part.encode(errors="surrogateescape")) > PART_MOST for part in parts):
                give_up(f"{label} has {plain(entry.name)[:60]}..., whose name is too long")
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
    if name := below_a_file({name for name, entry in entries.items() if entry}, entries):
        give_up(f"{label} has {plain(name)}, whose folder is a file of it")
    return entries


def read_archive(label, content):
    """Returns its entries and its package.json."""
    try:
        entries = read_entries(label, content)
        _, text = entries.get("package.json") or (False, b"{}")
        package_json = json.loads(text) if len(text) <= PACKAGE_JSON_MOST else {}
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, RecursionError, OverflowError) as cause:
        give_up(f"{label} cannot be read: {plain(cause)}")
    return entries, package_json if isinstance(package_json, dict) else {}


def check_integrity(label, content, wanted):
    """Compares the archive with the registry's integrity, "sha512-BASE64"."""
    kind, _, digest = (wanted or "").split(" ")[0].partition("-")
    if kind in ("sha512", "sha384", "sha256", "sha1") and base64.b64encode(hashlib.new(kind, content).digest()).decode() == digest:
        return
    give_up(f"{label} is not what its registry says of it")


def read_package(path, package, version, integrity):
    """The entries of an archive and its package.json, if it has the registry's integrity, and is the requested package."""
    label = f"{package}-{version}.tgz"
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        give_up(f"npm has not fetched {label}")
    check_integrity(label, content, integrity)
    entries, package_json = read_archive(label, content)
    if (package_json.get("name"), package_json.get("version")) != (package, version):
        give_up(f"{label} says that it is {plain(package_json.get('name')) or 'nothing'} "
                f"{plain(package_json.get('version'))}, and npm has asked for {package} {version}")
    return entries, package_json


def add_entries(archive, folder, entries):
    """Adds only what was read to an archive, with headers that every tar reads the same way."""
    for name in sorted(entries):
        entry = tarfile.TarInfo(f"{folder}/{name}")
        executable, content = entries[name] or (True, b"")
        entry.mode, entry.size = 0o755 if executable else 0o644, len(content)
        entry.type = tarfile.REGTYPE if entries[name] else tarfile.DIRTYPE
        archive.addfile(entry, io.BytesIO(content))

"""Makes a template from the interpreter and the packages of this program: python -m glovebox.environment [VENV].

The files of the interpreter and of its package folders are copied into the template `minimal` once, and the copy is used
until pip changes something. Files that could be secrets, and links out of these folders, are left out.
Inside, the interpreter lies in /opt/python and the packages in /usr/lib/pythonX.Y/site-packages."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import marshal
import os
import re
import site
import stat
import sys
import warnings
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .progress import Listener, Progress, Wish, listener_of

# Modules that only the copying needs are imported there, so that later starts do not import them.
NAME = "this-environment"
ABOUT = "about.json"  # which environment it is, and what was left out of the copy
FORMAT = "2"  # changing this number makes new copies of all environments
TIME = 1735689600  # of every file, as in other templates
LIBRARIES = "usr/lib/x86_64-linux-gnu"
FILE_MAX = 4 << 30
KEY_FILE_MAX = 64 << 10
PRIVATE = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
SECRET_NAMES = re.compile(
    r"\.env.*|.*\.env|\.netrc|\.pypirc|\.npmrc|\.pgpass|\.git.*|\.ssh|\.aws|\.azure|\.kube|\.docker|\.gnupg"
    r"|id_(rsa|dsa|ecdsa|ed25519)(_sk)?|.*\.(key|p12|pfx|jks|keystore|kdbx|ppk)"
    r"|(credentials?|secrets?)(\.(json|ya?ml|toml|ini|txt|csv|db))?|pip\.conf")
LINKER_NAMES = re.compile(r".*\.l?a")
CACHE_NAMES = re.compile(r"__pycache__|\..*_cache|\.cache|.*\.py[co]|\.ipynb_checkpoints")
EDITABLE_NAMES = re.compile(r"__editable__.*|.*\.egg-link|.*\.pth")
LIBC = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|util|anl|resolv|pthread|nss_\w+|thread_db|BrokenLocale))\.so.*")


class Entry(NamedTuple):
    """An entry of the template: a folder, a copy of a file, a file with given bytes, or a link."""

    mode: int = 0o755
    source: Optional[str] = None
    content: Optional[bytes] = None
    link: Optional[str] = None


class Collection:
    """The entries of a template, and the files that were left out, with reasons."""

    def __init__(self) -> None:
        self.entries: Dict[str, Entry] = {}
        self.left_out: List[Tuple[str, str]] = []

    def add(self, path: str, entry: Entry) -> None:
        above = os.path.dirname(path)
        if above and above not in self.entries:
            self.add(above, Entry())
        self.entries[path] = entry

    def leave_out(self, path: str, why: str) -> None:
        self.left_out.append((path, why))


def cause_to_leave_out(name: str) -> Optional[str]:
    if SECRET_NAMES.fullmatch(name):
        return "could be a secret"
    if CACHE_NAMES.fullmatch(name):
        return "a cache"
    if LINKER_NAMES.fullmatch(name):
        return "for linkers only"
    if EDITABLE_NAMES.fullmatch(name):
        return "leads to other folders"
    if any(ord(letter) < 32 or 0xd800 <= ord(letter) < 0xe000 for letter in name):
        return "its name is no text"
    return None


def read_file(path: str) -> Optional[bytes]:
    """The content of a plain file that is not a link; None for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        return file.read() if stat.S_ISREG(status.st_mode) and status.st_size < FILE_MAX else None


def holds_private_key(path: str, size: int) -> bool:
    """Python files are not searched for keys: the interpreter needs them, and their text may mention keys."""
    if size >= KEY_FILE_MAX or path.endswith((".py", ".pyi", ".so")):
        return False
    return PRIVATE.search(read_file(path) or b"") is not None


def walk(top: str, collection: Collection, skip: Tuple[str, ...] = ()) -> Iterator[Tuple[str, os.stat_result]]:
    """Relative paths of the plain files below a folder, without following a link."""
    folders = [""]
    while folders:
        folder = folders.pop()
        with os.scandir(os.path.join(top, folder)) as found:
            for one in sorted(found, key=lambda each: each.name):
                path = os.path.join(folder, one.name)
                why = cause_to_leave_out(one.name)
                if path in skip:
                    continue
                if why:
                    if why != "a cache":
                        collection.leave_out(os.path.join(top, path), why)
                elif one.is_symlink():
                    collection.leave_out(os.path.join(top, path), "a link")
                elif one.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif one.is_file(follow_symlinks=False):
                    yield path, one.stat(follow_symlinks=False)


def compiled(source: str, content: bytes, status: os.stat_result, inside: str) -> Optional[bytes]:
    """Compiled code of a Python file, marked so that the interpreter does not compare times. An existing .pyc is used if it
    matches the source."""
    head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(content)
    cache = read_file(importlib.util.cache_from_source(source, optimization=""))
    expected = importlib.util.MAGIC_NUMBER + b"\0" * 4 + (int(status.st_mtime) & 0xffffffff).to_bytes(4, "little") + (
        status.st_size & 0xffffffff).to_bytes(4, "little")
    if cache and cache[:16] == expected:
        return head + cache[16:]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return head + marshal.dumps(compile(content, f"/{inside}", "exec", dont_inherit=True, optimize=0))
    except (SyntaxError, ValueError, RecursionError):
        return None


def add_tree(collection: Collection, top: str, target: str, skip: Tuple[str, ...] = ()) -> None:
    """Copies a folder of Python files; what is there already stays."""
    for path, status in walk(top, collection, skip):
        inside = f"{target}/{path}"
        if inside in collection.entries:
            continue
        source = os.path.join(top, path)
        if path.endswith(".dist-info/direct_url.json"):
            collection.leave_out(source, "names folders of this machine")
            continue
        if holds_private_key(source, status.st_size):
            collection.leave_out(source, "holds a private key")
            continue
        collection.add(inside, Entry(0o755 if status.st_mode & 0o111 else 0o644, source))
        if path.endswith(".py") and "/tests/" not in path:  # rarely imported
            content = read_file(source)
            made = compiled(source, content, status, inside) if content is not None else None
            if made:
                name = os.path.basename(importlib.util.cache_from_source(path, optimization=""))
                collection.add(f"{os.path.dirname(inside)}/__pycache__/{name}", Entry(0o644, content=made))


def add_base(collection: Collection, root: str) -> None:
    """The template `minimal` without its Python."""
    folders = [""]
    while folders:
        folder = folders.pop()
        with os.scandir(os.path.join(root, folder)) as found:
            for one in found:
                path = os.path.join(folder, one.name)
                if re.fullmatch(rf"usr/(lib|bin|share)/(python|pydoc|py3).*|{LIBRARIES}/libpython3.*", path):
                    continue
                if one.is_symlink():
                    collection.add(path, Entry(0o777, link=os.readlink(one.path)))
                elif one.is_dir(follow_symlinks=False):
                    collection.add(path, Entry())
                    folders.append(path)
                else:
                    collection.add(path, Entry(stat.S_IMODE(one.stat(follow_symlinks=False).st_mode), one.path))


def site_folders() -> List[str]:
    """The package folders, in the order of the import system."""
    found = site.getsitepackages()
    if sys.prefix == sys.base_prefix and site.ENABLE_USER_SITE:
        found = [site.getusersitepackages(), *found]
    return [folder for folder in dict.fromkeys(map(os.path.realpath, found)) if os.path.isdir(folder)]


def standard_library() -> str:
    return os.path.dirname(os.path.realpath(os.__file__))


def interpreter() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def libraries_of(files: List[str]) -> Dict[str, str]:
    """The shared libraries that these files would load here: name and path."""
    import subprocess
    found: Dict[str, str] = {}
    for at in range(0, len(files), 100):
        done = subprocess.run(["ldd", *files[at:at + 100]], capture_output=True, check=False, stdin=subprocess.DEVNULL,
                              env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"})
        for line in done.stdout.decode("utf-8", "replace").splitlines():
            match = re.match(r"\t(?:(\S+) => )?(/\S+) \(0x", line)
            if match:
                found.setdefault(os.path.basename(match[1] or match[2]), match[2])
    return found


def is_within(path: str, folders: List[str]) -> bool:
    return any(os.path.commonpath([path, folder]) == folder for folder in folders)


def add_libraries(collection: Collection, manifest: Dict[str, Any]) -> None:
    """Shared libraries of the interpreter and the packages. If this machine's C library is not newer than the template's, the
    template keeps its own."""
    copied = [entry.source for entry in collection.entries.values() if entry.source]
    here = [standard_library(), *site_folders()]
    found = libraries_of([interpreter(), *(path for path in copied if re.search(r"\.so(\.\d+)*$", path) and
                                           is_within(path, here))])
    theirs = next((row["version"] for row in manifest["packages"] if row["name"] == "libc6"), "0")
    ours = os.confstr("CS_GNU_LIBC_VERSION") or "glibc 0"
    is_newer = numbers_of(ours) > numbers_of(theirs)
    if is_newer:
        folder = os.path.dirname(found.get("libc.so.6", "/"))
        found.update({name: os.path.join(folder, name) for name in os.listdir(folder) if LIBC.fullmatch(name)})
    home = os.path.realpath(os.path.expanduser("~"))
    for name, place in sorted(found.items()):
        source = os.path.realpath(place)
        if is_within(source, here):
            continue  # a library inside a package, which finds it by itself
        if home != "/" and is_within(source, [home]) and not is_within(source, [os.path.realpath(sys.base_prefix)]):
            collection.leave_out(place, "a library in the home folder")
        elif is_newer or f"{LIBRARIES}/{name}" not in collection.entries:
            collection.add(f"{LIBRARIES}/{name}", Entry(0o755, source))


def numbers_of(version: str) -> Tuple[int, ...]:
    match = re.search(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def collect(root: str, manifest: Dict[str, Any]) -> Collection:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    collection = Collection()
    add_base(collection, root)
    library = standard_library()
    # lib-dynload of Debian and Fedora may be in another folder than the rest of the standard library.
    dynamic = next((os.path.realpath(path) for path in sys.path if path.endswith("lib-dynload")), f"{library}/lib-dynload")
    add_tree(collection, library, f"opt/python/lib/{version}",
             ("site-packages", "dist-packages", "test", "idlelib", "turtledemo", "lib2to3/tests"))
    if os.path.isdir(dynamic):
        add_tree(collection, dynamic, f"opt/python/lib/{version}/lib-dynload")
    collection.add(f"opt/python/bin/{version}", Entry(0o755, interpreter()))
    for name in ("python", "python3", version):
        collection.add(f"usr/bin/{name}", Entry(0o777, link=f"/opt/python/bin/{version}"))
    collection.add("usr/pyvenv.cfg", Entry(0o644, content=(
        f"home = /opt/python/bin\ninclude-system-site-packages = false\nversion = {sys.version.split()[0]}\n").encode()))
    for folder in site_folders():
        add_tree(collection, folder, f"usr/lib/{version}/site-packages", ("glovebox/_programs",))
    add_libraries(collection, manifest)
    return collection


def packages() -> List[Dict[str, str]]:
    from importlib.metadata import distributions
    found = {(one.metadata["Name"] or "", one.version or "") for one in distributions(path=site_folders())}
    return [{"name": name[:200], "version": version[:200]} for name, version in sorted(found) if name]


def write_archive(target: str, collection: Collection, manifest: Dict[str, Any], listener: Optional[Listener] = None) -> None:
    """As `glovebox template export` writes one, with the digest that docs/templates.md describes."""
    import tarfile
    digest = hashlib.sha256()
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:  # it is read once, right away: compressing takes longer
        def put(name: str, kind: bytes, mode: int, content: bytes = b"", link: str = "") -> None:
            member = tarfile.TarInfo(name)
            member.type, member.mode, member.linkname, member.mtime = kind, mode, link, TIME
            member.size = len(content) if kind == tarfile.REGTYPE else 0
            archive.addfile(member, io.BytesIO(content) if member.size else None)

        put("root", tarfile.DIRTYPE, 0o755)
        rows = sorted(collection.entries.items(), key=lambda one: one[0].encode().split(b"/"))
        for number, (path, entry) in enumerate(rows, 1):
            if listener is not None and (number % 100 == 0 or number == len(rows)):
                listener(Progress("copy this environment", number, len(rows), "files"))
            if entry.link is not None:
                kind, letter, text, content = tarfile.SYMTYPE, "l", entry.link, b""
            elif entry.source is None and entry.content is None:
                kind, letter, text, content = tarfile.DIRTYPE, "d", "", b""
            else:
                found = entry.content if entry.source is None else read_file(entry.source)
                if found is None:
                    raise OSError(f"{entry.source} has been changed meanwhile, or cannot be read")
                kind, letter, text, content = tarfile.REGTYPE, "f", hashlib.sha256(found).hexdigest(), found
            put(f"root/{path}", kind, entry.mode, content, entry.link or "")
            digest.update(f"{path}\0{letter}{entry.mode:o}\0{text}\n".encode())
        for key in ("languages", "env", "zygotes"):
            text = json.dumps(manifest[key], separators=(",", ":"), ensure_ascii=False).replace("/", r"\/")
            digest.update(f"{key}\0{text}\n".encode())
        manifest["digest"] = f"sha256:{digest.hexdigest()}"
        put("manifest.json", tarfile.REGTYPE, 0o644, json.dumps(manifest).encode())


def fingerprint() -> str:
    """A fingerprint that changes when pip, uv or conda change something."""
    digest = hashlib.sha256(f"{FORMAT}\0{sys.version}\0{sys.prefix}\0{interpreter()}\0".encode())
    for folder in site_folders():
        digest.update(f"{folder}\0{os.stat(folder).st_mtime_ns}\0".encode())
        for name in sorted(name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))):
            status = os.stat(os.path.join(folder, name))
            digest.update(f"{name}\0{status.st_mtime_ns}\0{status.st_ino}\0".encode())
    return digest.hexdigest()[:24]


def states() -> str:
    """The folder with one state folder for each environment."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    own = "/var/lib/glovebox" if os.geteuid() == 0 else f"{base}/glovebox"
    return os.path.join(os.environ.get("GLOVEBOX_STATE") or own, "environments")


def make_template(target: str, listener: Optional[Listener] = None) -> None:
    """Copies the environment of this interpreter into the state folder `target`."""
    import subprocess
    import tempfile
    from .errors import UnavailableException
    from .server import import_template, program
    from .templates import run_import
    c_library = "CS_GNU_LIBC_VERSION" in os.confstr_names and os.confstr("CS_GNU_LIBC_VERSION")  # empty with musl
    if os.uname().machine != "x86_64" or not c_library:
        raise UnavailableException("an environment is copied on x86-64 Linux with glibc only; name a template of the server")
    import_template(listener or False)
    root = os.path.join(os.path.dirname(states()), "templates", "minimal")
    try:
        with open(f"{root}/manifest.json", encoding="utf-8") as file:
            minimal = json.load(file)
    except OSError as cause:
        raise UnavailableException("a copy of this environment needs the template minimal; build it: glovebox template "
                                   "build minimal") from cause
    collection = collect(f"{root}/root", minimal)
    manifest: Dict[str, Any] = {
        "name": NAME, "description": f"Python {sys.version.split()[0]} with the packages of an environment.",
        "source": "host-copy", "languages": minimal["languages"], "env": minimal["env"], "zygotes": {"light": []},
        "leave_out": [], "packages": minimal["packages"], "python": packages(), "approved": []}
    os.makedirs(target, mode=0o755, exist_ok=True)
    with open(f"{target}/{ABOUT}", "w", encoding="utf-8") as file:
        json.dump({"prefix": sys.prefix, "left_out": collection.left_out}, file)
    with tempfile.TemporaryDirectory(dir=target) as scratch:
        archive = f"{scratch}/environment.tar"
        write_archive(archive, collection, manifest, listener)
        run_import(["--state", target], archive, NAME, listener)
    for name in os.listdir(states()):
        older = os.path.join(states(), name)
        if name != os.path.basename(target) and about(older).get("prefix") == sys.prefix:
            # A copy that a server uses is kept until that server has ended.
            subprocess.run([program(), "template", "--state", older, "remove", NAME], capture_output=True, check=False,
                           stdin=subprocess.DEVNULL)


def about(target: str) -> Dict[str, Any]:
    try:
        with open(f"{target}/{ABOUT}", encoding="utf-8") as file:
            found: Dict[str, Any] = json.load(file)
            return found
    except (OSError, ValueError):
        return {}


def state(on_progress: Wish = None) -> str:
    """The state folder with the template of this environment; it is made if there is none, or if pip has changed
    something. on_progress: as for glovebox.import_template()."""
    import fcntl
    target = os.path.join(states(), fingerprint())
    whole = f"{target}/templates/{NAME}/manifest.json"
    if os.path.exists(whole):
        return target
    os.makedirs(states(), mode=0o755, exist_ok=True)
    with open(f"{states()}/lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(whole):
            make_template(target, listener_of(on_progress, usual=True))
    return target


def main(arguments: List[str]) -> int:
    import subprocess
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print("usage: python -m glovebox.environment [VENV]\n\nMakes the template this-environment of the interpreter and "
              "packages of VENV (this one, if none is named)\nand says what was left out of it.")
        return 0 if len(arguments) == 1 else 2
    if arguments:
        python = os.path.join(arguments[0], "bin", "python")
        if not os.access(python, os.X_OK):
            print(f"{arguments[0]} is no virtual environment: it has no program bin/python", file=sys.stderr)
            return 2
        source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        return subprocess.run([python, "-c", "import sys; sys.path.append(sys.argv[1]); import glovebox.environment as e; "
                               "sys.exit(e.main([]))", source], check=False).returncode
    target = state()
    for path, why in about(target)["left_out"]:
        print(f"left out: {path}: {why}")
    print(f"{target}: template {NAME}, {len(packages())} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

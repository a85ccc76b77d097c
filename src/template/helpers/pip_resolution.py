# pip_resolution.py - finds wheels in the index that pip is configured for, one after the other, with their dependencies.
# Other helpers begin with it: tools/embed puts it before them. Wheels only: no code of them is run or built. pip fetches one
# archive at a time and resolves nothing: dependencies are read here, and one that is not a package of an index is refused
# (PEP 508 allows a URL, and pip would build what is there).

import email.parser
import site
import subprocess
import tempfile
import urllib.parse
import zipfile

sys.path += site.getsitepackages()
try:
    from pip._vendor.packaging import markers, requirements, specifiers, utils
except ImportError:
    give_up("python3 has no pip here; on this machine, as root: apt install python3-pip; in a recipe: packages: [python3-pip]")

PAPER_MOST = 1 << 20
PACKAGES_MOST = 200
ROUNDS_MOST = 400
NO_WAY = ("NewConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "name resolution", "Connection refused",
          "Network is unreachable", "ProxyError", "Connection reset")
NOT_REACHED = "the package index cannot be reached; check the network and pip's settings (pip config list)"


def same(name):
    return utils.canonicalize_name(name)


def run_pip(*words):
    done = subprocess.run([sys.executable, "-I", "-m", "pip", *words], capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout, done.stderr


def indexes_in(said):
    """The indexes in pip's output, without names, passwords and tokens."""
    listed = re.search(r"^Looking in indexes: (.*)$", said, re.MULTILINE)
    parts = [urllib.parse.urlsplit(plain(one)) for one in (listed.group(1).split(",") if listed else [])]
    found = ", ".join(f"{one.scheme}://{one.netloc.rpartition('@')[2]}{one.path}" for one in parts)
    return found or "the index that pip asks where none is configured"


def why_no_answer(said, wanted):
    """Why the index gave no answer; a 404 is an answer. pip says it only with -vv, and otherwise fails as if the index had
    no such package, so pip is run once more."""
    if "No matching distribution" in said and not any(word in said for word in NO_WAY):
        with tempfile.TemporaryDirectory() as folder:
            _, out, err = run_pip("download", "-vv", "--disable-pip-version-check", "--no-input", "--no-cache-dir", "--no-deps",
                                  "--only-binary=:all:", "--retries=0", "--timeout=20", "--dest", folder, wanted)
        said = out + err
    if any(word in said for word in NO_WAY):
        return NOT_REACHED
    failed = re.search(r"certificate verify failed: [^()'\"]*|too many \d+ error responses|"
                       r"(?!404)[45]\d\d (?:Client|Server) Error: .*?(?= for url)", said)
    return failed and f"the package index cannot be used: {plain(failed[0]).strip()}; see pip config list: its address, password, cert"


def why_not(said, wanted):
    no_answer = why_no_answer(said, wanted)
    wanted = wanted.replace("==", " ")
    if no_answer:
        return no_answer
    if "No matching distribution" in said:
        others = re.search(r"\(from versions: (?!none)([^)]*)\)", said)
        if others:
            return f"the index has no wheel of {wanted} for this template; it has {plain(', '.join(others[1].split(', ')[-5:]))}"
        return (f"the index has no wheel of {wanted} for this template: is the name right? A source archive is not taken: it "
                f"runs its author's code when it is installed")
    errors = [line for line in said.splitlines() if line.startswith("ERROR: ")] or said.splitlines() or ["no word"]
    return "pip: " + plain(errors[-1].removeprefix("ERROR: "))


def metadata_file(wheel, ending):
    """A file of the dist-info folder, or None."""
    for entry in wheel.infolist():
        if re.fullmatch(r"[^/]+\.dist-info/" + re.escape(ending), entry.filename) and entry.file_size <= PAPER_MOST:
            return wheel.read(entry).decode("utf-8", "replace")
    return None


def requirement_of(text, where):
    try:
        return requirements.Requirement(text)
    except requirements.InvalidRequirement:
        return give_up(f"{where} needs {plain(text)}, which cannot be read; it is not taken")


def needs_of(path, extras, environment):
    """The dependencies of this wheel here. A URL in place of a name is refused."""
    with zipfile.ZipFile(path) as wheel:
        metadata = email.parser.HeaderParser().parsestr(metadata_file(wheel, "METADATA") or "")
    label = f"{plain(metadata.get('Name'))} {plain(metadata.get('Version'))}"
    for text in metadata.get_all("Requires-Dist", []):
        need = requirement_of(text, label)
        wanted = not need.marker or any(need.marker.evaluate({**environment, "extra": extra}) for extra in {"", *extras})
        if need.url:
            give_up(f"{label} needs {plain(need.name)} from {plain(re.sub(r'//[^/@]*@', '//', need.url))}; only packages of the "
                    f"index are taken, since what lies at an address is built when it is fetched: ask its author for a release "
                    f"without \" @ \", or for {plain(need.name)} in the index")
        if wanted:
            yield need


class Resolution:
    """Resolves one package after the other, each with all requirements on it so far."""

    def __init__(self, folder, python, inside):
        self.folder, self.python, self.inside = folder, python, inside
        self.asked, self.extras, self.fetched, self.rounds, self.said = {}, {}, {}, 0, ""
        self.environment = {**markers.default_environment(), "python_version": python, "python_full_version": f"{python}.0"}

    def ask(self, need, where):
        """Adds a requirement. Returns whether the package has to be fetched or checked again."""
        name = same(need.name)
        asked = self.asked[name] = self.asked.get(name, specifiers.SpecifierSet()) & need.specifier
        more = set(need.extras) - self.extras.setdefault(name, set())
        self.extras[name] |= more
        if name in self.inside and name != where:
            if not asked.contains(self.inside[name], prereleases=True):
                give_up(f"{where} needs {plain(need.name)}{plain(asked)}, and the template has {plain(self.inside[name])}")
            return False
        version = self.fetched[name][1] if name in self.fetched else None
        return version is None or more or not asked.contains(version, prereleases=True)

    def fetch(self, name):
        if name in self.fetched:
            os.unlink(self.fetched.pop(name)[0])
        self.rounds += 1
        if len(self.fetched) == PACKAGES_MOST or self.rounds == ROUNDS_MOST:
            give_up(f"it needs more than {PACKAGES_MOST} packages, or versions that do not go together")
        before = set(os.listdir(self.folder))
        wanted = f"{name}{self.asked[name]}"
        status, out, err = run_pip("download", "--disable-pip-version-check", "--no-input", "--no-cache-dir", "--no-deps",
                                   "--only-binary=:all:", "--retries=1", "--timeout=20", "--python-version", self.python,
                                   "--dest", self.folder, wanted)
        if status != 0:
            give_up(why_not(out + err, wanted))
        self.said = self.said or out
        fresh = [one for one in os.listdir(self.folder) if one not in before and one.endswith(".whl")]
        if len(fresh) != 1 or same(fresh[0].split("-")[0]) != name:
            give_up(f"pip has fetched {plain(', '.join(fresh)) or 'nothing'} for {name}")
        path = os.path.join(self.folder, fresh[0])
        self.fetched[name] = (path, str(utils.parse_wheel_filename(fresh[0])[1]))
        return path

    def resolve(self, first):
        waiting = [same(first.name)] if self.ask(first, same(first.name)) else []
        while waiting:
            name = waiting.pop(0)
            path = self.fetch(name)
            for need in needs_of(path, self.extras[name], self.environment):
                if self.ask(need, name) and same(need.name) not in waiting:
                    waiting.append(same(need.name))

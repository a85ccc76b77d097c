"""Adding a package to a template: request, review, approval, then installation byte for byte. The index is a folder
that a server of the test serves on loopback; pip is this machine's."""

import base64
import gzip
import hashlib
import http.server
import io
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import tarfile
import tempfile
import threading
import zipfile

import jsonschema
import pytest

from conftest import TOP, Glovebox
from described import other_moments
from package_index import IndexServer, npm_package, wheel_of

MANIFEST = {"name": "minimal", "packages": [{"name": "python3", "version": "3.11.2-1"}],
            "python": [{"name": "inside", "version": "2.5"}]}
COMMANDS = "[console_scripts]\ngreet = greet:main\n"


BACKEND = """import os
def get_requires_for_build_wheel(*_):
    open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "built"), "w").close()
    open({marker!r}, "w").close()
    return []
get_requires_for_build_sdist = prepare_metadata_for_build_wheel = build_wheel = get_requires_for_build_wheel
"""


def source_of(folder):
    """A source archive whose build backend lies in it (PEP 517) and says that it has run."""
    place = folder / "source"
    place.mkdir()
    marker = str(folder / "built-on-the-host")
    files = {"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
             "backend.py": BACKEND.format(marker=marker), "PKG-INFO": "Metadata-Version: 2.1\nName: built\nVersion: 1.0\n"}
    with tarfile.open(place / "built-1.0.tar.gz", "w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"built-1.0/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return place / "built-1.0.tar.gz"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    server = IndexServer(folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    wheel_of(folder, "greet", "1.0", {
        "greet.py": "import helper\n\ndef main():\n    print(helper.WORD)\n", "greet-1.0.dist-info/entry_points.txt": COMMANDS,
        "greet_start.pth": "import sys\n"}, needs=["helper>=1", "inside>=2", "more; extra == 'all'"])
    wheel_of(folder, "helper", "1.2", {"helper.py": "WORD = 'hello from a wheel'\n"})
    wheel_of(folder, "lying", "1.0", {"lying.py": "x = 1\n"})
    wheel_of(folder, "helper", "1.1", {"helper.py": "WORD = 'hello from an older wheel'\n"})
    wheel_of(folder, "byaddress", "1.0", {"byaddress.py": ""}, needs=[f"built @ file://{source_of(folder)}"])
    wheel_of(folder, "deep", "1.0", {"deep.py": ""}, needs=["byaddress; python_version >= '3'"])
    wheel_of(folder, "elsewhere", "1.0", {"elsewhere.py": ""}, needs=["built @ https://u:pass@127.0.0.1:1/b.tar.gz ; extra == 'x'"])
    wheel_of(folder, "older", "1.0", {"older.py": ""}, needs=["helper<1.2"])
    wheel_of(folder, "both", "1.0", {"both.py": ""}, needs=["helper>=1", "older[more]; python_version < '4'"])
    wheel_of(folder, "newer", "1.0", {"newer.py": ""}, needs=["inside>=3"])
    wheel_of(folder, "torn", "1.0", {"torn.py": ""}, needs=["helper>=1,<1.2", "helper>=1.2"])
    wheel_of(folder, "unreadable", "1.0", {"unreadable.py": ""}, needs=["helper ;;"])
    (folder / "sourceonly-1.0.tar.gz").write_bytes(b"a source archive")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def libs(tmp_path, index):
    """The program with a state folder of its own and an operator whose pip asks the index of the test."""
    glovebox = Glovebox(tmp_path)
    folder = tempfile.TemporaryDirectory(prefix="glovebox-libs-")  # users of sandboxes cannot pass pytest's
    os.chmod(folder.name, 0o755)
    glovebox.state = pathlib.Path(folder.name)
    made = glovebox.state / "templates/minimal"
    made.mkdir(parents=True)
    (made / "manifest.json").write_text(json.dumps(MANIFEST))
    env = {"PIP_CONFIG_FILE": os.devnull, "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": "",
           "PIP_INDEX_URL": f"http://somebody:secret@127.0.0.1:{index.server_port}/simple"}

    def call(*words, code=0):
        done = glovebox("libs", *words, env=env, timeout=120)
        assert done.returncode == code, done.stderr.decode()
        return (done.stdout if code == 0 else done.stderr).decode()

    call.glovebox, call.env = glovebox, env
    yield call
    folder.cleanup()


def ask(libs, name, *words):
    return json.loads(libs("request", name, "--template", "minimal", "--json", *words))["id"]


def test_a_package_is_asked_for_looked_at_and_approved(libs):
    assert "nothing waits" in libs("review")
    request = ask(libs, "greet", "--reason", "says hello: \"nicely\"")
    assert "first: glovebox libs review" in libs("approve", request, code=125)
    seen = libs("review", request)
    assert "secret" not in seen and "\x1b" not in seen and "says hello" in seen and "127.0.0.1" in seen
    facts = json.loads(libs("review", request, "--json"))["review"]
    greet, helper = facts["files"]
    assert (greet["name"], greet["version"], greet["licence"], greet["commands"]) == ("greet", "1.0", "MIT", ["greet"])
    assert greet["needs"] == ["helper>=1", "inside>=2"] and greet["runs_at_start"] == ["greet_start.pth"]
    assert helper["name"] == "helper", "what the template has already does not come from the index"
    kept = libs.glovebox.state / "libs" / request / "archives" / greet["file"]
    assert hashlib.sha256(kept.read_bytes()).hexdigest() == greet["sha256"]
    right = kept.read_bytes()
    kept.write_bytes(right + b"!")
    assert "is not what was looked at" in libs("approve", request, code=125)
    kept.write_bytes(right)
    assert "glovebox template build minimal" in libs("approve", request, "--reason", "read every line")
    text = (libs.glovebox.state / "libs/minimal.approved.yaml").read_text()
    assert greet["sha256"] in text and "read every line" in text and f"({os.getuid()})" in text
    assert "approved already" in libs("approve", request, code=125)
    rows = [row for row in json.loads(libs("minimal", "--json")) if "approved_by" in row]
    assert [(row["name"], row["built"]) for row in rows] == [("greet", False), ("helper", False)] and rows[0]["approved_at"]
    assert "comes with the next build" in libs("minimal", "greet")
    assert "leaves it out" in libs("deny", request, "--reason", "no longer")
    assert libs("review") == "nothing waits; ask with: glovebox libs request NAME\n1 decided: --all shows them\n"
    [listed] = json.loads(libs("review", "--all", "--json"))
    assert json.loads(libs("review", "--json")) == [] and listed["id"] == request
    assert listed["asked_at"] <= listed["reviewed_at"] <= listed["decided_at"] and other_moments([rows, listed]) == []
    assert libs("review", "--all").startswith(f"{request}  denied")
    assert json.loads(libs("minimal", "greet", "--json")) == []


def test_a_missing_template_is_reported_with_the_command_that_builds_it(libs):
    for template, how in (("node", "run: glovebox template build node"), ("mine", "glovebox template build FILE.yaml")):
        asked = libs.glovebox("libs", "request", "x", "--template", template)
        assert asked.returncode == 0 and how in asked.stderr.decode() and b"glovebox libs review lib_" in asked.stderr
        assert how in libs(template, code=125) and how in libs("review", asked.stdout.decode().strip(), code=125)


def test_every_step_is_logged(libs):
    request = ask(libs, "helper", "--version", "1.2")
    for verb in ("review", "approve", "deny"):
        libs(verb, request)
    said = libs.glovebox("log", "search", "--json", "").stdout.splitlines()
    told = [json.loads(line) for line in said]
    schema = json.loads((TOP / "docs/reference/event.schema.json").read_text())
    for event in told:
        jsonschema.validate(event, schema)
    assert [event["event"] for event in told] == ["libs.requested", "libs.reviewed", "libs.approved", "libs.denied"]
    facts = told[2]["facts"]
    assert (facts["package"], facts["version"], facts["template"], facts["uid"]) == ("helper", "1.2", "minimal", os.getuid())
    assert facts["sha256"] == json.loads(libs("review", request, "--json"))["review"]["files"][0]["sha256"]
    (libs.glovebox.state / "daemon/log/checkpoint").write_text("no checkpoint\n")
    assert "the log cannot tell" in libs("request", "greet", code=125), "what cannot be told is not done"


def header_of(path, content=b"", kind=tarfile.REGTYPE, link="", signs=b"\0 "):
    """An entry with its checksum spelt as asked for: Python's tarfile ends at b" x", GNU tar reads on."""
    entry = tarfile.TarInfo(path)
    entry.size, entry.type, entry.linkname, entry.mode = len(content), kind, link, 0o755
    block = bytearray(entry.tobuf(tarfile.USTAR_FORMAT))
    block[148:156] = b" " * 8
    block[148:156] = b"%06o" % sum(block) + signs
    return bytes(block) + content + b"\0" * (-len(content) % 512)


@pytest.fixture
def registry(libs, index, tmp_path, monkeypatch):
    """An operator whose npm asks the registry of the test, and a template with Node.js."""
    if not shutil.which("npm"):
        pytest.skip("needs npm on this machine")
    monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{index.server_port}/")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    made = libs.glovebox.state / "templates/pack"
    made.mkdir(parents=True)
    (made / "manifest.json").write_text(json.dumps({"name": "pack", "packages": [{"name": "nodejs", "version": "18.20.4"}]}))
    npm_package(index, "pad", {"1.0.0": ({}, {"index.js": "module.exports = 1\n"}),
                               "2.0.0": ({}, {"index.js": "module.exports = 2\n"})})
    npm_package(index, "left", {"1.0.0": ({"dependencies": {"pad": "^1.0.0"}, "description": "Pads.\x1b[31m",
                                           "scripts": {"postinstall": "touch /tmp/ran"}, "bin": {"left": "index.js"}},
                                          {"index.js": "module.exports = require('pad')\n"})})
    npm_package(index, "@mine/box", {"1.0.0": ({"dependencies": {"left": "1.0.0", "pad": "2.0.0"}, "license": "MIT",
                                                "author": {"name": "A. Nobody"}},
                                               {"index.js": "module.exports = [require('left'), require('pad')]\n"})})
    npm_package(index, "leads-out", {"1.0.0": ({}, {"here": "-> /etc"})})
    return libs


def test_a_package_of_npm_lies_where_npm_would_put_it(registry, tmp_path):
    request = json.loads(registry("request", "@mine/box", "--npm", "--template", "pack", "--json"))["id"]
    seen = registry("review", request)
    assert "left out     postinstall, command left" in seen and "\x1b" not in seen and "for Node.js 18.20.4" in seen, seen
    assert [line.split() for line in seen.splitlines() if "    place " in line] == [["place", "left/node_modules/pad"]], seen
    files = json.loads(registry("review", request, "--json"))["review"]["files"]
    assert (files[0]["name"], files[0]["licence"], files[0]["maintainer"]) == ("@mine/box", "MIT", "A. Nobody")
    places = {one["place"]: one["version"] for one in files}
    assert places == {"@mine/box": "1.0.0", "left": "1.0.0", "pad": "2.0.0", "left/node_modules/pad": "1.0.0"}
    registry("approve", request)
    assert "leads-out-1.0.0.tgz has package/here" in registry("review", json.loads(registry(
        "request", "leads-out", "--npm", "--template", "pack", "--json"))["id"], code=125)
    recipe = tmp_path / "pack.yaml"
    recipe.write_text("name: pack\nbase: debian\npackages: [bash, coreutils, tar, gzip]\n"
                      "languages: {bash: {command: [/bin/bash, '{file}'], file: main.sh}}\n")
    done = registry.glovebox("template", "build", recipe, "--offline", "--json", timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    approved = json.loads(done.stdout)["approved"]
    assert {row["place"] for row in approved} == set(places)
    assert all(row["approved_by"].endswith(f"({os.getuid()})") and row["approved_at"] for row in approved), approved
    inside = registry.glovebox.state / "templates/pack/root/usr/local/lib/node_modules"
    assert [(inside / place / "index.js").read_text() for place in ("pad", "left/node_modules/pad")] == [
        "module.exports = 2\n", "module.exports = 1\n"]
    assert not any((inside.parents[3] / path).exists() for path in ("usr/share/glovebox/archives", "tmp/ran", "node_modules"))


PAPER = header_of("package/package.json", b'{"name": "two-ways", "version": "1.0.0"}')
END = b"\0" * 1024


def look_at(registry, name, code=0):
    request = json.loads(registry("request", name, "--npm", "--template", "pack", "--json"))["id"]
    said = registry("review", request, code=code)
    return said if code else json.loads(registry("review", request, "--json"))


@pytest.mark.parametrize("unpacked, failure", [
    (PAPER + header_of("package/hidden.node", b"x", signs=b" x") + END, "goes on behind its last entry"),
    (PAPER + b"\0" * 512 + header_of("package/hidden.node", b"x") + END, "goes on behind its last entry"),
    (PAPER + END + b"x", "goes on behind its last entry"),
    (PAPER + header_of("package/cut", b"x" * 600)[:-700], "cannot be read"),
    (PAPER + header_of("package/a", b"1") + header_of("package/a", b"2") + END, "has package/a twice"),
    (PAPER + header_of("package/pipe", kind=tarfile.FIFOTYPE) + END, "has package/pipe, which is not a file"),
    (PAPER + header_of("package/same", kind=tarfile.LNKTYPE, link="package/package.json") + END, "has package/same, which"),
    (PAPER + header_of("package/dev", kind=tarfile.CHRTYPE) + END, "has package/dev, which is not a file"),
    (header_of("package/package.json", b'{"name": "well-known", "version": "1.0.0"}') + END, "says that it is well-known 1.0.0"),
    (header_of("package/package.json", b'{"name": "two-ways", "version": "9.0.0"}') + END, "says that it is two-ways 9.0.0"),
    (header_of("package/index.js", b"1") + END, "says that it is nothing")],
    ids=["checksum", "behind an end", "behind both ends", "cut off", "twice", "pipe", "hard link", "device", "name", "version",
         "none"])
def test_an_archive_of_npm_that_can_be_read_two_ways_is_refused(registry, index, unpacked, failure):
    npm_package(index, "two-ways", {"1.0.0": ({}, {})}, gzip.compress(unpacked))
    assert failure in look_at(registry, "two-ways", code=125)


def test_what_is_approved_of_npm_is_an_archive_of_what_was_read(registry, index):
    comment = tarfile.TarInfo.create_pax_global_header({"comment": "of git archive"})
    long = "package/" + "a" * 120 + "/" + "b" * 120
    content = gzip.compress(comment + PAPER + header_of("package/run", b"#!/bin/sh\n") + header_of("package/lib/", kind=b"5")
                            + tarfile.TarInfo(long).tobuf(tarfile.PAX_FORMAT) + END)
    npm_package(index, "two-ways", {"1.0.0": ({}, {})}, content)
    seen = [look_at(registry, "two-ways") for _ in range(2)]
    first, second = (one["review"]["files"][0] for one in seen)
    assert first == second, "two who ask for one package get one digest"
    assert first["integrity"] == "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    kept = registry.glovebox.state / "libs" / seen[0]["id"] / "archives" / first["file"]
    assert hashlib.sha256(kept.read_bytes()).hexdigest() == first["sha256"] and kept.read_bytes() != content
    listed = subprocess.run(["tar", "--list", "--verbose", "--numeric-owner", "--file", kept], check=True, capture_output=True)
    lines = [line.split() for line in listed.stdout.decode().splitlines()]
    assert [(line[0], line[1], line[-1]) for line in lines] == [
        ("-rw-r--r--", "0/0", long), ("drwxr-xr-x", "0/0", "package/lib/"),
        ("-rwxr-xr-x", "0/0", "package/package.json"), ("-rwxr-xr-x", "0/0", "package/run")]


def test_archives_of_npm_have_names_of_their_own(registry, index):
    npm_package(index, "@mine/pad", {"1.0.0": ({}, {"index.js": "1"})})
    npm_package(index, "mine-pad", {"1.0.0": ({"dependencies": {"@mine/pad": "1.0.0"}}, {"index.js": "2"})})
    seen = look_at(registry, "mine-pad")
    files = seen["review"]["files"]
    folder = registry.glovebox.state / "libs" / seen["id"] / "archives"
    assert {one["place"] for one in files} == {"mine-pad", "@mine/pad"}
    assert [hashlib.sha256((folder / one["file"]).read_bytes()).hexdigest() for one in files] == [one["sha256"] for one in files]
    assert "approved for template pack" in registry("approve", seen["id"])


@pytest.fixture
def debian(libs, tmp_path, monkeypatch):
    """An apt of the test's own, whose one source is a folder with one package."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        pytest.skip("needs apt and dpkg")
    source, made = tmp_path / "source", tmp_path / "made"
    for folder in (source, made / "DEBIAN", tmp_path / "state/lists/partial", tmp_path / "cache/archives/partial"):
        folder.mkdir(parents=True)
    fields = "Package: greet\nVersion: 1:1.0-2\nArchitecture: all\nMaintainer: A. Nobody <a@example.org>\n" \
             "Depends: python3, helper (>= 1)\n"
    (made / "DEBIAN/control").write_text(f"{fields}Description: Says hello.\n")
    (made / "DEBIAN/postinst").write_text("#!/bin/sh\nexit 0\n")
    (made / "DEBIAN/postinst").chmod(0o755)
    archive = source / "greet_1.0-2_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", made, archive], check=True, capture_output=True)
    (tmp_path / "status").touch()
    (tmp_path / "sources.list").write_text(f"deb [trusted=yes] copy:{source} ./\n")
    (tmp_path / "apt.conf").write_text(
        f'Dir::State "{tmp_path}/state";\nDir::State::status "{tmp_path}/status";\nDir::Cache "{tmp_path}/cache";\n'
        f'Dir::Etc::sourcelist "{tmp_path}/sources.list";\nDir::Etc::sourceparts "-";\nAPT::Sandbox::User "root";\n'
        f'APT::Architectures "";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))

    def update(content):
        (source / "Packages").write_text(f"{fields}Filename: ./{archive.name}\nSize: {len(content)}\n"
                                         f"SHA256: {hashlib.sha256(content).hexdigest()}\nDescription: Says hello.\n")
        subprocess.run(["apt-get", "update"], check=True, capture_output=True)
    update(archive.read_bytes())
    return update, archive.read_bytes()


def test_a_package_of_debian_is_bound_by_version_and_digest(libs, debian):
    update, content = debian
    request = ask(libs, "greet", "--apt")
    facts = json.loads(libs("review", request, "--json"))["review"]
    [greet] = facts["files"]
    assert (greet["version"], greet["sha256"], greet["machine_code"]) == ("1:1.0-2", hashlib.sha256(content).hexdigest(), False)
    assert greet["runs_at_install"] == ["postinst"] and greet["needs"] == ["helper"] and greet["about"] == "Says hello."
    seen = libs("review", request)
    assert "at install   postinst: run in the build, as root of a user namespace, without network and host" in seen, seen
    assert "needs        helper: come along from the same sources, with scripts of their own" in seen
    libs("approve", request, "--reason", "small")
    [row] = [row for row in json.loads(libs("minimal", "--json")) if row["name"] == "greet"]
    assert row["approved_by"].endswith(f"({os.getuid()})") and not row["built"] and row["reason"] == "small"
    update(content + b"!")
    done = libs.glovebox("template", "build", "minimal", "--base", "debian")
    assert done.returncode == 125, done
    assert b"approved package greet 1:1.0-2: the index of packages has another archive under it" in done.stderr, done
    said = [json.loads(line) for line in libs.glovebox("log", "search", "--json", "greet").stdout.splitlines()]
    assert [(one["event"], one["facts"]["manager"], one["facts"]["uid"]) for one in said] == [
        (f"libs.{verb}", "apt", os.getuid()) for verb in ("requested", "reviewed", "approved")]


@pytest.mark.parametrize("name, failure", [
    ("byaddress", "byaddress 1.0 needs built from file://"), ("deep", "byaddress 1.0 needs built from file://"),
    ("elsewhere", "needs built from https://127.0.0.1:1/b.tar.gz"), ("newer", "needs inside>=3, and the template has 2.5"),
    ("torn", "no wheel of helper"), ("unreadable", "unreadable 1.0 needs helper ;;, which cannot be read")])
def test_what_a_wheel_needs_is_read_and_not_built(libs, index, name, failure):
    """pip would build what lies at an address, for its metadata, as the user who reviews."""
    request = ask(libs, name)
    said = libs("review", request, code=125)
    assert failure in said and "pass" not in said, said
    assert not list(index.folder.glob("built*")), "its build backend has run"
    assert "first: glovebox libs review" in libs("approve", request, code=125)


def test_dependencies_are_resolved_one_after_the_other(libs):
    files = json.loads(libs("review", ask(libs, "both"), "--json"))["review"]["files"]
    assert [(one["name"], one["version"]) for one in files] == [("both", "1.0"), ("helper", "1.1"), ("older", "1.0")]


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has one id, himself")
def test_a_review_runs_as_an_id_of_its_own(libs, index):
    index.fetchers.clear()
    libs("review", ask(libs, "greet"))
    assert index.fetchers == {(0x70020000, 0, 2)}, "no capabilities, a filter"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_an_ordinary_user_reviews(libs):
    """Whose group has another number than the user."""
    with tempfile.TemporaryDirectory() as state:
        shutil.copytree(libs.glovebox.state, state, dirs_exist_ok=True)
        for path in [pathlib.Path(state), *pathlib.Path(state).rglob("*")]:
            os.chown(path, 4321, 4322)
        def call(*words):
            return subprocess.run(["setpriv", "--reuid=4321", "--regid=4322", "--clear-groups", libs.glovebox.program, "libs",
                                   *words, "--state", state], env=libs.glovebox.environment({**libs.env, "HOME": "/"}),
                                  capture_output=True, timeout=120, check=False)
        request = json.loads(call("request", "helper", "--template", "minimal", "--json").stdout)["id"]
        done = call("review", request)
        if b"no new namespaces" in done.stderr:
            pytest.skip("this machine gives ordinary users no namespaces")
        assert done.returncode == 0 and b"helper 1.2" in done.stdout, done.stderr.decode()
        assert {path.stat().st_uid for path in pathlib.Path(state, "libs").rglob("*")} == {4321}
        assert not pathlib.Path(state, "libs", request, "home").exists(), "settings with passwords do not stay"


class Broken(http.server.BaseHTTPRequestHandler):
    """An index that answers every request with the status that its path begins with."""

    def do_GET(self):
        self.send_error(int(self.path.split("/")[1]))

    def log_message(self, *_):
        pass


@pytest.fixture
def broken():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Broken) as plain, \
            http.server.ThreadingHTTPServer(("127.0.0.1", 0), Broken) as encrypted, tempfile.TemporaryDirectory() as folder:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{folder}/key", "-out", f"{folder}/cert",
                        "-days", "2", "-subj", "/CN=localhost"], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/cert", f"{folder}/key")
        encrypted.socket = context.wrap_socket(encrypted.socket, server_side=True)
        threads = [threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}) for server in (plain, encrypted)]
        for thread in threads:
            thread.start()
        yield {"http": f"http://somebody:secret@127.0.0.1:{plain.server_port}", "https": f"https://localhost:{encrypted.server_port}"}
        for server, thread in zip((plain, encrypted), threads):
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("address, failure", [
    ("http://127.0.0.1:1/simple", "the package index cannot be reached; check the network and pip's settings"),
    ("{http}/503/", "the package index cannot be used: too many 503 error responses; see pip config list"),
    ("{http}/403/", "cannot be used: 403 Client Error: Forbidden;"), ("{http}/401/", "cannot be used: 401 Client Error: Unauthorized;"),
    ("{https}/", "cannot be used: certificate verify failed: self"), ("{http}/404/", "no wheel of helper for this template: is the name right?")])
def test_an_index_that_does_not_answer_is_no_index_without_the_package(libs, broken, address, failure):
    """pip ends all of them with "No matching distribution"."""
    libs.env["PIP_INDEX_URL"] = address.format(**broken)
    said = libs("review", ask(libs, "helper"), code=125)
    assert failure in said and "secret" not in said and ("no wheel" in said) == ("404" in address), said


def test_a_review_says_how_large_it_gets(libs):
    seen = libs("review", ask(libs, "greet"))
    [greet, helper] = json.loads(libs("review", ask(libs, "greet"), "--json"))["review"]["files"]
    assert helper["unpacked"] > 300 and greet["unpacked"] > helper["unpacked"] and "KiB unpacked" in seen
    assert "at start     greet_start.pth: its lines run whenever Python starts in a sandbox" in seen


@pytest.mark.parametrize("words, failure", [
    (["sourceonly"], "A source archive is not taken"), (["nowhere"], "no wheel of nowhere for this template: is the name right?"),
    (["helper", "--version", "9"], "no wheel of helper 9 for this template; it has 1.1, 1.2")])
def test_what_is_no_wheel_is_not_taken(libs, words, failure):
    request = ask(libs, *words)
    assert failure in libs("review", request, code=125)
    assert "first: glovebox libs review" in libs("approve", request, code=125)


@pytest.mark.parametrize("words, failure", [
    (["minimal", "zzz"], "no package with 'zzz' in its name"), (["request"], "which package?"),
    (["approve"], "which one?"), (["request", "@x/y"], "no name of a package"),
    (["request", "x", "--pip", "--apt"], "one of the three"), (["request", "@x/../y", "--npm"], "no name of a package"), (["request", "../x"], "no name of a package"),
    (["request", "-r"], "-r"), (["request", "x", "--version", "1 2"], "no version"),
    (["request", "x", "--template", "../y"], "no name of a template"), (["request", "x", "--reason", "a\nb"], "one line"),
    (["review", "../x"], "no id"), (["review", "lib_00000000"], "no request"), (["approve", "x", "y"], "libs takes no 'y'")])
def test_invalid_arguments_are_refused(libs, words, failure):
    assert failure in libs(*words, code=125)


@pytest.mark.parametrize("text, failure", [
    ("packages: [{name: x}]\n", "needs its version"), ("- a\n", "`packages:` and a list"),
    ("packages:\n  - {name: x, manager: gem}\n", "no manager"),
    ("packages:\n  - {name: x, place: a/../b}\n", "no place"), ("packages:\n  - {name: ../x}\n", "no name"),
    ("packages:\n  - {nom: x}\n", "no such key")])
def test_a_list_that_is_none_stops_the_build(libs, text, failure):
    (libs.glovebox.state / "libs").mkdir()
    (libs.glovebox.state / "libs/minimal.approved.yaml").write_text(text)
    done = libs.glovebox("template", "build", "minimal", "--offline")
    assert done.returncode == 125 and failure.encode() in done.stderr and b"minimal.approved.yaml:" in done.stderr


def test_imports_at_start_are_reported(libs, index):
    data = "sly-1.0.data"
    wheel_of(index.folder, "sly", "1.0", {path: "" for path in (
        "sly.py", "sly/notes.pth", "sly/sitecustomize.py", "sitecustomize/__init__.py", "usercustomize.cpython-311.so", "sly.pth",
        f"{data}/purelib/lib.pth", f"{data}/data/lib/python3.11/dist-packages/far.pth", f"{data}/data/x/sitecustomize.py",
        "apport_python_hook.py", "_distutils_hack/__init__.py", f"{data}/data/share/notes.txt", f"{data}/scripts/python3", f"{data}/data/bin/bash")})
    [sly] = json.loads(libs("review", ask(libs, "sly"), "--json"))["review"]["files"]
    assert sly["runs_at_start"] == sorted([
        "sitecustomize/__init__.py", "usercustomize.cpython-311.so", "sly.pth", f"{data}/purelib/lib.pth",
        f"{data}/data/lib/python3.11/dist-packages/far.pth", f"{data}/data/x/sitecustomize.py",
        "apport_python_hook.py", "_distutils_hack/__init__.py"])
    assert sorted(sly["commands"]) == ["bash", "python3"]


def forge(libs, change):
    """An approved wheel whose archive was changed after that, with the digest of the change."""
    request = ask(libs, "helper")
    libs("review", request)
    libs("approve", request)
    [archive] = (libs.glovebox.state / "libs" / request / "archives").iterdir()
    before = archive.read_bytes()
    change(archive)
    listed = libs.glovebox.state / "libs/minimal.approved.yaml"
    listed.write_text(listed.read_text().replace(hashlib.sha256(before).hexdigest(), hashlib.sha256(archive.read_bytes()).hexdigest()))


def grow(archive):
    """Five entries of a gigabyte each, as the archive states it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made, zipfile.ZipFile(archive) as old:
        for entry in old.infolist():
            made.writestr(entry, old.read(entry))
        for number in range(5):
            made.writestr(f"large{number}.py", b"x")
            made.filelist[-1].file_size = 1 << 30
    archive.write_bytes(packed.getvalue())


def swap_content(archive):
    with zipfile.ZipFile(archive) as old:
        entries = {entry.filename: old.read(entry) for entry in old.infolist()}
    with zipfile.ZipFile(archive, "w") as made:
        for name, content in entries.items():
            made.writestr(name, content + b"#" if name == "helper.py" else content)


def empty_record(archive):
    with zipfile.ZipFile(archive) as old:
        entries = {entry.filename: old.read(entry) for entry in old.infolist()}
    with zipfile.ZipFile(archive, "w") as made:
        for name, content in entries.items():
            made.writestr(name, b"" if name.endswith("RECORD") else content)


@pytest.mark.parametrize("change, failure", [
    (grow, b"more than 4 GiB"), (swap_content, b"is not what its record says"), (empty_record, b"has no digest of")])
def test_a_wheel_is_bounded_and_checked_as_it_is_unpacked(libs, change, failure):
    forge(libs, change)
    done = build(libs)
    assert done.returncode == 125 and failure in done.stderr, done.stderr.decode()


def build(libs):
    return libs.glovebox("template", "build", "minimal", "--offline", "--json", timeout=300)


def test_what_a_wheel_runs_at_start_is_not_run_by_the_build(libs, index):
    """Python is started without site there; in sandboxes it is not."""
    wheel_of(index.folder, "starter", "1.0", {"starter.py": "", "starter.pth": (
        "import os; os.makedirs('/usr/share/ran', exist_ok=True); open('/usr/share/ran/here', 'w').close()\n")})
    request = ask(libs, "starter")
    libs("review", request)
    libs("approve", request)
    done = build(libs)
    assert done.returncode == 0, done.stderr.decode()
    assert {"name": "starter", "version": "1.0"} in json.loads(done.stdout)["python"]
    root = libs.glovebox.state / "templates/minimal/root"
    assert list(root.rglob("starter.pth")) and not (root / "usr/share/ran").exists()


def test_an_approved_package_that_cannot_be_imported_stops_the_build(libs, index):
    wheel_of(index.folder, "needy", "1.0", {"needy.py": "import what_nobody_has\n"})
    request = ask(libs, "needy")
    libs("review", request)
    libs("approve", request)
    done = build(libs)
    assert done.returncode == 125 and (b"package needy cannot be imported: import needy: ModuleNotFoundError: No module named "
                                       b"'what_nobody_has'; take it out of what is approved") in done.stderr, done.stderr
    assert not (libs.glovebox.state / "templates/minimal/root").exists(), "the template before it stays"


def test_the_import_of_an_approved_package_changes_no_file_of_the_template(libs, index):
    wheel_of(index.folder, "writes", "1.0", {"writes.py": (
        "import os, tempfile\ntempfile.TemporaryFile().write(b'x')\nopen(os.devnull, 'w').close()\n"
        "for change in (lambda: open('/usr/lib/planted', 'w'), lambda: os.remove('/usr/bin/env'), lambda: os.mkdir('/usr/planted'),\n"
        "               lambda: os.truncate('/usr/bin/env', 0), lambda: os.rename('/usr/bin/env', '/usr/bin/planted'),\n"
        "               lambda: os.symlink('/x', '/usr/lib/planted'), lambda: os.link('/usr/bin/env', '/usr/lib/planted')):\n"
        "    try: change()\n    except OSError: continue\n    raise SystemExit('it was changed')\n")})
    request = ask(libs, "writes")
    libs("review", request)
    libs("approve", request)
    done = build(libs)
    assert done.returncode == 0, done.stderr.decode()
    root = libs.glovebox.state / "templates/minimal/root"
    assert not list(root.rglob("planted")) and (root / "usr/bin/env").stat().st_size > 0


def test_a_build_installs_what_was_approved_and_nothing_else(libs):
    request = ask(libs, "greet")
    libs("review", request)
    libs("approve", request)
    archive = libs.glovebox.state / "libs" / request / "archives/greet-1.0-py3-none-any.whl"
    right = archive.read_bytes()
    archive.write_bytes(right[:-1] + b"!")
    done = build(libs)
    assert done.returncode == 125 and b"approved package greet 1.0: its archive is not the one" in done.stderr, done.stderr
    archive.write_bytes(right)
    done = build(libs)
    assert done.returncode == 0, done.stderr.decode()
    assert [(row["name"], row["request"]) for row in json.loads(done.stdout)["approved"]] == [
        ("greet", request), ("helper", request)]
    assert {"name": "greet", "version": "1.0"} in json.loads(done.stdout)["python"]
    ran = libs.glovebox.run("--policy", "minimal", "-c", "import greet, os; greet.main(); os.system('greet')")
    assert ran.stdout == b"hello from a wheel\n" * 2, ran
    assert all(row["built"] for row in json.loads(libs("minimal", "--json")) if "built" in row)

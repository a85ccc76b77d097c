"""Templates with packages of npm: what a recipe lists under `npm` is resolved once by this machine's npm, pinned by a lock,
unpacked without running anything of it, and loaded before the template takes its place. The registry is a server of the
test's own on loopback."""

import base64
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import pytest

from conftest import TOP, Glovebox
from package_index import IndexServer, npm_package

pytestmark = pytest.mark.skipif(not shutil.which("npm"), reason="needs npm on this machine")

HELPERS = ("common.py", "left_out.py", "npm_packages.py", "fetch_npm.py")
RECIPE = """\
name: {name}
base: host-copy
packages: [{packages}]
npm: {npm}
leave_out: [usr/include, usr/lib/node_modules, usr/share/node_modules, usr/local/lib/node_modules/*/tests]
languages:
  node: {{command: [/usr/bin/node, "{{file}}"], file: main.js}}
"""
SCRIPT = {"scripts": {"postinstall": "touch /tmp/ran"}}


def add_packages(index):
    def add(name, *versions):
        npm_package(index, name, {version: (paper, files) for version, paper, files in versions})

    add("pad", ("1.0.0", {}, {"index.js": "module.exports = 1\n", "tests/one.js": ""}), ("2.0.0", {}, {"index.js": "module.exports = 2\n"}))
    add("left", ("1.0.0", {"dependencies": {"pad": "^1.0.0"}, **SCRIPT}, {"index.js": "module.exports = ['left', require('pad')]\n"}))
    add("@mine/box", ("1.0.0", {"dependencies": {"left": "1.0.0", "pad": "2.0.0"}},
                      {"index.js": "module.exports = [require('left'), require('pad')]\n"}))
    add("modern", ("3.1.0", {"type": "module", "exports": {"import": "./index.mjs"}, "dependencies": {"pad": "*"}},
                   {"index.mjs": "import pad from 'pad'\nexport const word = `modern ${pad}`\n"}))
    add("types-only", ("1.0.0", {"types": "index.d.ts", "main": ""}, {"index.d.ts": "export {}\n"}))
    add("broken", ("1.0.0", SCRIPT, {"index.js": "require('a-module-that-is-missing')\n"}))
    add("shouts", ("1.0.0", {}, {"index.js": "throw new Error('red \\x1b[31m\\nsecond')\n"}))
    add("ring-a", ("1.0.0", {"dependencies": {"ring-b": "1"}}, {"index.js": "exports.b = require('ring-b')\n"}))
    add("ring-b", ("1.0.0", {"dependencies": {"ring-a": "1"}}, {"index.js": "require('ring-a'); exports.name = 'b'\n"}))
    add("compiles", ("1.0.0", {}, {"binding.gyp": "{}", "index.js": ""}))
    add("downloads", ("1.0.0", {"scripts": {"install": "prebuild-install || node-gyp rebuild"}}, {"index.js": ""}))
    add("ships", ("1.0.0", {}, {"binding.gyp": "{}", "prebuilds/linux-x64/a.node": "", "index.js": ""}))
    add("may-compile", ("1.0.0", {"optionalDependencies": {"compiles": "1"}}, {"index.js": ""}))
    add("for-others", ("1.0.0", {"optionalDependencies": {"of-mac": "1", "of-musl": "1", "of-arm": "1", "of-intel": "1"}}, {"index.js": ""}))
    for name, paper in (("of-mac", {"os": ["darwin"]}), ("of-musl", {"libc": ["musl"]}), ("of-arm", {"cpu": ["arm64"]}),
                        ("of-intel", {"cpu": ["x64"]})):
        add(name, ("1.0.0", paper, {"index.js": ""}))
    add("by-address", ("1.0.0", {"dependencies": {"far": f"http://u:pass@127.0.0.1:{index.server_port}/far.tgz"}}, {}))
    add("by-git", ("1.0.0", {"dependencies": {"far": "git+https://127.0.0.1:1/far.git"}}, {}))
    add("by-folder", ("1.0.0", {"dependencies": {"far": "file:../../etc"}}, {}))
    add("bad-name", ("1.0.0", {"dependencies": {"../../up": "1"}}, {}))
    add("leads-out", ("1.0.0", {}, {"here": "-> /etc"}))
    add("climbs", ("1.0.0", {}, {"../../up.js": ""}))
    add("brings-pad", ("1.0.0", {"dependencies": {"left": "1", "pad": "2"}}, {"index.js": ""}))


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    server = IndexServer(tmp_path_factory.mktemp("registry"))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    add_packages(server)
    yield server
    server.let_go.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def fetch(index, tmp_path):
    """What the helper of a build says of a list, without the build: its answer, or its last word."""
    code = "\n".join((TOP / "src/template/helpers" / name).read_text() for name in HELPERS)
    folder = tmp_path / "archives"
    folder.mkdir()
    env = {**os.environ, "HOME": str(tmp_path), "npm_config_registry": f"http://u:secret@127.0.0.1:{index.server_port}/",
           "npm_config_fetch_timeout": "1500"}

    def call(*wanted, lock="", offline=False, change="", env=env, leave_out=()):
        request = {"wanted": wanted, "lock": lock, "offline": offline, "leave_out": leave_out}
        (tmp_path / "request.json").write_text(json.dumps(request))
        done = subprocess.run([sys.executable, "-I", "-S", "-c", code.replace("\n\nmain()", f"\n\n{change}\nmain()"),
                               tmp_path / "request.json", folder],
                              env=env, capture_output=True, text=True, timeout=120, check=False)
        assert "secret" not in done.stderr and "Traceback" not in done.stderr, done.stderr
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr.splitlines()[-1]

    call.folder, call.env = folder, env
    return call


def rows_of(answer):
    assert isinstance(answer, dict), answer
    return [line.split(" ") for line in answer["lock"].splitlines() if not line.startswith("#")]


def files_of(folder):
    with tarfile.open(folder / "packages.tar") as archive:
        return {entry.name.removeprefix("usr/local/lib/node_modules/") for entry in archive}


def test_a_list_is_resolved_once_and_pinned_by_integrity(fetch, index):
    first = fetch("@mine/box", "modern@^3", leave_out=["usr/local/lib/node_modules/left/node_modules/*/tests"])
    rows = rows_of(first)
    assert [row[:2] for row in rows] == [["@mine/box", "@mine/box@1.0.0"], ["left", "left@1.0.0"], ["left/node_modules/pad", "pad@1.0.0"],
                                         ["modern", "modern@3.1.0"], ["pad", "pad@2.0.0"]]
    content = index.registry["/left/-/1.0.0.tgz"]
    assert rows[1][2] == "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    assert {"name": "pad", "version": "1.0.0"} in first["files"] and len(first["files"]) == 5
    files = files_of(fetch.folder)
    assert {"left/node_modules/pad/index.js", "pad/index.js", "@mine/box/index.js"} <= files
    assert "left/node_modules/pad/tests/one.js" not in files, "left out by the recipe"
    assert f"{hashlib.sha512(content).hexdigest()}.tgz" in {path.name for path in fetch.folder.iterdir()}
    npm_package(index, "pad", {"2.1.0": ({}, {"index.js": "module.exports = 21\n"})})
    index.asked.clear()
    away = {**fetch.env, "npm_config_registry": "http://127.0.0.1:1/", "PATH": "/nothing"}
    assert fetch("@mine/box", "modern@^3", lock=first["lock"], env=away, offline=True)["files"] == first["files"] and not index.asked
    add_packages(index)


def test_archives_that_are_missing_are_fetched_by_the_lock(fetch, index):
    first = fetch("left")
    index.asked.clear()
    for path in fetch.folder.glob("*.tgz"):
        path.write_bytes(b"broken on the disk")
    again = fetch("left", lock=first["lock"], env={**fetch.env, "npm_config_cache": str(fetch.folder.with_name("other-cache"))})
    assert again["files"] == first["files"] and again["lock"] == "" and "/left/-/1.0.0.tgz" in index.asked
    for path in fetch.folder.glob("*.tgz"):
        path.unlink()
    assert "2 of 2 packages of npm are not in the cache, left 1.0.0 is one of them" in fetch("left", lock=first["lock"], offline=True)
    assert "there is no lock for this list" in fetch("left", "pad", lock=first["lock"], offline=True)
    npm_package(index, "left", {"1.0.0": ({"dependencies": {"pad": "^1.0.0"}}, {"index.js": "'another'\n"})})
    text = fetch("left", lock=first["lock"])
    add_packages(index)
    assert "the registry has other archives than the lock names: left 1.0.0; remove the lock" in text
    cut = "\n".join(line.replace("sha512-", "sha1-") for line in first["lock"].splitlines())
    assert "the lock has a line that pins nothing: left left@1.0.0 sha1-" in fetch("left", lock=cut)
    up = first["lock"].replace("\nleft ", "\n../../up ")
    assert "the lock has a line that pins nothing: ../../up left@1.0.0" in fetch("left", lock=up)


def test_a_cycle_of_packages_ends(fetch):
    assert [row[0] for row in rows_of(fetch("ring-a"))] == ["ring-a", "ring-b"]


def test_what_is_for_other_machines_stays_in_the_lock(fetch):
    rows = {row[0]: row[3:] for row in rows_of(fetch("for-others"))}
    assert rows == {"for-others": [], "of-arm": ["arm64"], "of-intel": ["x64"]}
    brought = {name.split("/")[0] for name in files_of(fetch.folder)}
    assert len(brought & {"of-arm", "of-intel"}) == 1 and not brought & {"of-mac", "of-musl"}


@pytest.mark.parametrize("name", ["compiles", "downloads"])
def test_what_would_have_to_be_compiled_is_refused(fetch, name):
    text = fetch(name)
    assert f"{name} 1.0.0 has to be compiled or fetched by its install script, which is not run here" in text
    assert "ships its binary for linux-" in text and "sets: [npm]" in text


def test_what_ships_its_binary_or_can_do_without_is_taken(fetch):
    assert "ships/prebuilds/linux-x64/a.node" in (fetch("ships", "may-compile"), files_of(fetch.folder))[1]
    assert "compiles/index.js" not in files_of(fetch.folder)


@pytest.mark.parametrize("name, words", [
    ("by-address", ["by-address needs far from an address", "only packages of the registry"]),
    ("by-git", ["only packages of the registry are taken"]),
    ("by-folder", ["only packages of the registry are taken"]),
    ("bad-name", ["npm"]),
    ("leads-out", ["leads-out-1.0.0.tgz has package/here, which is not a file of its own folder"]),
    ("climbs", ["climbs-1.0.0.tgz has package/../../up.js, which is not a file"]),
    ("nosuchpackage", ["npm:", "nosuchpackage"]),
    ("pad@^9", ["npm:", "pad@^9"])])
def test_what_cannot_be_taken_is_one_line(fetch, index, name, words):
    npm_package(index, "far", {"1.0.0": ({}, {"index.js": ""})})
    index.registry["/far.tgz"] = index.registry["/far/-/1.0.0.tgz"]
    text = fetch(name)
    assert isinstance(text, str) and all(word in text for word in words) and "pass" not in text and len(text) < 400, text


def test_an_archive_that_writes_where_another_package_lies_is_refused(fetch, index):
    npm_package(index, "left", {"1.0.0": ({"dependencies": {"pad": "^1.0.0"}}, {
        "index.js": "", "node_modules/pad/index.js": "'mine'\n"})})
    text = fetch("brings-pad")
    add_packages(index)
    assert "node_modules/left/node_modules/pad/index.js, which another package has brought" in text


@pytest.mark.parametrize("paper, files, words", [
    ({}, {"a": "1", "a/b": "2"}, "odd-1.0.0.tgz has a/b, whose folder is a file of it"),
    ({"dependencies": {"pad": "2", "left": "1"}}, {"node_modules": "1"}, "odd/node_modules/pad"),
    ({}, {"n" * 256: "1"}, "whose name is too long"),
    ({}, {"d/" * 600 + "x": "1"}, "whose name is too long"),
    ({"optionalDependencies": ["pad"]}, {}, "odd has optionalDependencies that are no names with versions: ['pad']")])
def test_a_package_that_is_odd_is_refused_in_words(fetch, index, paper, files, words):
    npm_package(index, "odd", {"1.0.0": (paper, {"index.js": "", **files})})
    npm_package(index, "beside", {"1.0.0": ({"dependencies": {"odd": "1", "pad": "1"}}, {"index.js": ""})})
    text = fetch("beside", "pad@1")
    assert isinstance(text, str) and words in text, text


@pytest.mark.parametrize("number", [b"9" * 30, b"-1", b"0x1"])
def test_a_header_with_an_odd_size_is_refused_in_words(fetch, index, number):
    """POSIX' extended header of a file says a size that no file has."""
    record = b"size=" + number + b"\n"
    record = b"%d %s" % (len(record) + 3, record)
    extended, file = tarfile.TarInfo("package/x"), tarfile.TarInfo("package/package.json")
    extended.type, extended.size = tarfile.XHDTYPE, len(record)
    archive = extended.tobuf() + record.ljust(512, b"\0") + file.tobuf() + bytes(1024)
    npm_package(index, "oversized", {"1.0.0": ({}, {})}, gzip.compress(archive))
    text = fetch("oversized")
    assert isinstance(text, str) and text.startswith("oversized-1.0.0.tgz "), text


@pytest.mark.parametrize("paper", [{"os": "linux"}, {"os": "!win32", "cpu": "any"}, {"os": ["any"]}, {"cpu": "!ia32"},
                                   {"os": None, "cpu": None, "libc": "glibc"}])
def test_machines_are_read_as_npm_reads_them(fetch, index, paper):
    """One for all machines has no more than three words in the lock."""
    npm_package(index, "somewhere", {"1.0.0": (paper, {"index.js": ""})})
    [row] = rows_of(fetch("somewhere"))
    assert len(row) == 3 and row[0] == "somewhere"


def test_bytes_that_are_not_what_the_registry_says_are_refused(fetch, index):
    npm_package(index, "altered", {"1.0.0": ({}, {"index.js": "1\n"})})
    index.registry["/altered/-/1.0.0.tgz"] = index.registry["/pad/-/1.0.0.tgz"]
    text = fetch("altered")
    assert text.startswith("npm: sha512-") and "integrity checksum failed" in text, text


def answer_garbage(handler):
    handler.answer("application/json", b"<html>{]" * 100)


def answer_never(handler):
    handler.server.let_go.wait(60)


def answer_without_end(handler):
    """1 GiB at the most: who reads on has no bound."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    handler.wfile.write(b'{"name": "strange", "readme": "')
    for _ in range(1 << 10):
        handler.wfile.write(b"a" * (1 << 20))


@pytest.mark.parametrize("body, words", [
    (answer_garbage, ["npm:"]), (answer_never, ["the registry cannot be reached"]),
    (answer_without_end, ["the registry's answer is too large"]),
    (b'{"name": "strange", "dist-tags": [], "versions": 7}', ["npm:"])])
def test_a_registry_that_answers_strangely(fetch, index, body, words):
    index.registry["/strange"] = body
    before = time.monotonic()
    text = fetch("strange", change="MEMORY_MOST = 400 << 20")
    assert isinstance(text, str) and all(word in text for word in words), text
    assert time.monotonic() - before < 60
    assert "cannot be reached" in fetch("pad", env={**fetch.env, "npm_config_registry": "http://127.0.0.1:1/"})


def test_npm_has_its_time(fetch, index):
    index.registry["/strange"] = answer_never
    env = {**fetch.env, "npm_config_fetch_timeout": "60000"}
    assert "the registry has not answered in 0 minutes" in fetch("strange", change="SECONDS_MOST = 3", env=env)


def test_ten_thousand_packages_are_too_many(fetch, index):
    """What npm has resolved, as its lock file says it, since npm needs minutes for so many."""
    many = '{f"node_modules/many-{number}": {"version": "1.0.0"} for number in range(10_000)}'
    text = fetch("pad", change=f'def resolve(wanted): return places_of({{"packages": {many}}})')
    assert "npm wants 10000 packages, with what they need; at most 2000 are taken" in text, text
    npm_package(index, "wide", {"1.0.0": ({"dependencies": {"left": "1", "ring-a": "1", "pad": "2"}}, {"index.js": ""})})
    assert "npm wants 6 packages, with what they need; at most 5" in fetch("wide", change="PACKAGES_MOST = 5")


def test_what_is_unpacked_is_bounded(fetch, index):
    text = fetch("pad", change="BYTES_MOST = 10")
    assert "the packages of npm have more than 0 GiB or" in text
    npm_package(index, "bomb", {"1.0.0": ({}, {})}, gzip.compress(os.urandom(2 << 20)))
    assert "bomb-1.0.0.tgz has more than 1 MiB in it" in fetch("bomb", change="UNPACKED_MOST = 1 << 20")


@pytest.fixture(scope="module")
def templates(tmp_path_factory, index):
    """Builds a recipe from copies of this machine's packages; what does not end well gives its last line."""
    if not shutil.which("dpkg-query") or subprocess.run(["dpkg-query", "-W", "nodejs"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine has no package nodejs to copy")
    glovebox = Glovebox(tmp_path_factory.mktemp("npm"))
    folder = tempfile.TemporaryDirectory(prefix="glovebox-npm-")  # users of sandboxes cannot pass pytest's
    os.chmod(folder.name, 0o755)
    glovebox.state = pathlib.Path(folder.name)
    recipe = glovebox.folder / "mine.yaml"
    env = {"npm_config_registry": f"http://127.0.0.1:{index.server_port}/", "npm_config_fetch_timeout": "3000"}

    def build(*wanted, words=(), packages="bash, coreutils, tar, nodejs", env=env):
        recipe.write_text(RECIPE.format(name="mine", npm=json.dumps(wanted), packages=packages))
        done = glovebox("template", "build", recipe, "--json", *words, env=env, timeout=300)
        build.said = done.stderr.decode()
        return json.loads(done.stdout) if done.returncode == 0 else build.said.splitlines()[-1]

    build.env = env
    build.glovebox, build.lock, build.root = glovebox, glovebox.folder / "mine.npm.lock", glovebox.state / "templates/mine/root"
    yield build
    folder.cleanup()


@pytest.fixture(scope="module")
def story(templates):
    """Two builds, since each takes seconds: the first of a list, and one from its lock without the registry."""
    wanted = ["@mine/box", "modern@^3", "types-only", "ring-a"]
    found = {"first": templates(*wanted), "said": templates.said, "lock": templates.lock.read_text()}
    found["again"] = templates(*wanted, words=["--offline"], env={"npm_config_registry": "http://127.0.0.1:1/"})
    found["said again"] = templates.said
    return found


def in_place(templates):
    return json.loads(templates.glovebox("template", "show", "mine", "--json").stdout)["digest"]


def test_a_template_brings_what_its_recipe_lists_of_npm(templates, story):
    assert isinstance(story["first"], dict), story["first"]
    assert {"name": "left", "version": "1.0.0"} in story["first"]["npm"] and len(story["first"]["npm"]) == 8
    assert story["again"]["digest"] == story["first"]["digest"]
    assert "4 packages of npm; needs" in story["said"], story["said"]
    assert "4 packages of npm, 8 with what they need, 1 MiB to fetch; needs" in story["said again"], story["said again"]
    shown = templates.glovebox("template", "show", "mine").stdout.decode()
    assert "npm:\n  @mine/box                        1.0.0\n" in shown, shown
    listed = json.loads(templates.glovebox("libs", "mine", "modern", "--json").stdout)
    assert [(one["name"], one["version"], one["manager"]) for one in listed] == [("modern", "3.1.0", "npm")]
    assert not list(templates.root.rglob("packages.tar")) and not (templates.root / "tmp/ran").exists()


PROGRAMS = {
    "require.js": "console.log(JSON.stringify(require('@mine/box')))",
    "import.mjs": "import box from '@mine/box'; import { word } from 'modern'; console.log(JSON.stringify(box), word)",
    "later.js": "import('modern').then(({ word }) => console.log(word))",
    "two.js": "require('./import-later.js')",
    "none.mjs": "import('not-there').catch((failure) => console.log(failure.message))",
    "own.mjs": "import pad from 'pad'; console.log(pad)",
    "processors.mjs": "import { cpus } from 'os'; console.log(cpus().length > 0)",
    "eval.js": "console.log(require('child_process').execFileSync('node', ['-e', \"import('modern').then((m) => console.log(m.word))\"],"
               " { encoding: 'utf8' }).trim())",
}
PRINTS = {
    "require.js": '[["left",1],2]', "import.mjs": '[["left",1],2] modern 2', "later.js": "modern 2", "two.js": "modern 2",
    "none.mjs": "Cannot find package 'not-there' imported from /workspace/none.mjs", "own.mjs": "own", "processors.mjs": "true", "eval.js": "modern 2",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_find_them_by_require_and_import(templates, story, name, tmp_path):
    (tmp_path / name).write_text(PROGRAMS[name])
    (tmp_path / "import-later.js").write_text("import('modern').then(({ word }) => console.log(word))\n")
    (tmp_path / "index.js").write_text("module.exports = 'own'\n")
    files = ["--file", f"{tmp_path}/import-later.js"]
    files += ["--file", f"{tmp_path}/index.js:node_modules/pad/index.js"] if name == "own.mjs" else []
    done = templates.glovebox.run("--policy", "node", "--template", "mine", *files, tmp_path / name)
    assert done.stdout.decode().strip() == PRINTS[name], done


@pytest.mark.parametrize("name, words", [
    ("broken", ["package broken of npm cannot be loaded: Cannot find module 'a-module-that-is-missing'",
                "its postinstall script was not run", "take it out of `npm`"]),
    ("shouts", ["package shouts of npm cannot be loaded: red  [31m"])])
def test_packages_are_tried_before_the_template_takes_its_place(templates, story, name, words):
    text = templates("pad", name)
    assert isinstance(text, str) and all(word in text for word in words) and "\x1b" not in text, text
    assert in_place(templates) == story["again"]["digest"], "the template of before stays"


def test_an_approved_package_at_the_place_of_a_listed_one_is_refused(templates, story):
    def libs(*words):
        done = templates.glovebox("libs", *words, env={"npm_config_registry": templates.env["npm_config_registry"]}, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    request = json.loads(libs("request", "modern", "--npm", "--template", "mine", "--json"))["id"]
    libs("review", request)
    libs("approve", request)
    text = templates("pad@1")
    assert text.endswith("approved package pad 2.0.0: `npm` of the recipe brings one to its place; take its row out of libs/mine.approved.yaml, "
                         "or that one out of the recipe"), text
    assert in_place(templates) == story["again"]["digest"]
    listed = templates.glovebox.state / "libs/mine.approved.yaml"
    head, *rows = re.split(r"^(?=  - )", listed.read_text(), flags=re.MULTILINE)
    listed.write_text(head + "".join(row for row in rows if '"pad"' not in row.splitlines()[0]))
    made = templates("pad@2")
    assert isinstance(made, dict) and [row["name"] for row in made["approved"]] == ["modern"], made
    assert (templates.root / "usr/local/lib/node_modules/modern/index.mjs").exists()
    listed.unlink()


def test_what_the_template_lacks_is_reported(templates):
    assert "`npm` needs usr/bin/node in the template: add nodejs to `packages`" in templates("pad", packages="bash, coreutils, tar")
    assert "is wrong: it must be a name in npm's registry" in templates("file:../pad")

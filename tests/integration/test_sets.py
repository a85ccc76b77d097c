"""Network sets: the configuration of this host's package managers becomes a set file that every user can read. Code
whose policy names the set can install from there and from nowhere else. The index is a server of the test."""

import base64
import hashlib
import http.server
import io
import json
import os
import signal
import ssl
import tarfile
import tempfile
import threading
import time
import zipfile

import pytest

from conftest import STATE
from egress_rig import PUBLIC
from internet import certificate
from served_rig import served_world
from web_server import WebServer

POLICY = """name: web
extends: data
description: packages of an index of the test
network: {sets: [pip, npm], bytes: 1MiB}
limits: {wall: 60s}
maximum: {wall: 60s}
"""
PLAIN = "[global]\nindex-url = http://index.example.org/simple\n"
PIP = """[global]
# who may read this may not have the password
index-url = http://operator:secret@index.example.org/simple?token=1
extra-index-url =
    https://more.example.org/simple
    http://third.example.org:8081/simple
[install]
no-color = yes
"""
NPM = "@mine:registry=https://mine.example.org/\nregistry=http://npm.example.org:8080/\n"


SCRIPTS = """name: js
template: node
languages: [node, bash]
description: packages of a registry of the test
network: {sets: [npm], bytes: 1MiB}
limits: {wall: 60s, memory: 512MiB}
maximum: {wall: 60s, memory: 512MiB}
"""


def has_pip():
    return (STATE / "templates/python/root/usr/bin/pip3").exists()


def has_npm():
    return (STATE / "templates/node/root/usr/share/nodejs/npm").exists()


def make_tarball():
    """left-1.0.0, as npm packs it: a folder `package` in a tar."""
    files = {"package.json": json.dumps({"name": "left", "version": "1.0.0", "main": "left.js",
                                         "scripts": {"postinstall": "node left.js > installed"}}),
             "left.js": "module.exports = (text, size) => text.padEnd(size, '<');\n"}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


TARBALL = make_tarball()


def make_wheel(folder):
    """greet-1.0, pure Python, as a wheel (PEP 427)."""
    files = {"greet.py": "def hello():\n    return 'hello from a wheel'\n",
             "greet-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n",
             "greet-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    digest = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    record = "".join(f"{name},sha256={digest(text)},{len(text)}\n" for name, text in files.items())
    wheel = folder / "greet-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**files, "greet-1.0.dist-info/RECORD": record + "greet-1.0.dist-info/RECORD,,\n"}.items():
            archive.writestr(name, text)
    return wheel


class Index(http.server.BaseHTTPRequestHandler):
    """An index of Python packages and a registry of npm, each with one package."""

    def do_GET(self):
        wheel = self.server.wheel
        tarball = "http://npm.example.org:8080/left/-/left-1.0.0.tgz"
        pages = {"/simple/greet/": f'<a href="/files/{wheel.name}">{wheel.name}</a>'.encode(),
                 f"/files/{wheel.name}": wheel.read_bytes(),
                 "/left": json.dumps({"name": "left", "dist-tags": {"latest": "1.0.0"}, "versions": {
                     "1.0.0": {"name": "left", "version": "1.0.0", "hasInstallScript": True, "dist": {
                         "tarball": tarball, "shasum": hashlib.sha1(TARBALL).hexdigest()}}}}).encode(),
                 "/left/-/left-1.0.0.tgz": TARBALL}
        body = pages.get(self.path)
        self.server.asked.append((self.headers["Host"], self.path, self.headers.get("Authorization")))
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html" if self.path.startswith("/simple") else "application/octet-stream")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_):
        pass


def serve_index(place, port, wheel, handler=Index):
    with place:
        server = WebServer((PUBLIC, port), handler)
    server.wheel, server.asked = wheel, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture(scope="module")
def state():
    """A state folder of our own, with the templates that are there: sets are written into it. Users of sandboxes have
    to pass it, which they cannot do with pytest's."""
    with tempfile.TemporaryDirectory(prefix="glovebox-sets-") as folder:
        os.chmod(folder, 0o755)
        os.symlink(STATE / "templates", f"{folder}/templates")
        yield folder


@pytest.fixture(scope="module")
def operator(tmp_path_factory):
    """The variables of an operator whose clients are configured."""
    home = tmp_path_factory.mktemp("home")
    (home / ".npmrc").write_text(NPM)
    (home / "pip.conf").write_text(PIP)
    return {"HOME": str(home), "PIP_CONFIG_FILE": str(home / "pip.conf"), "PIP_INDEX_URL": "", "PIP_EXTRA_INDEX_URL": "",
            "npm_config_registry": ""}


@pytest.fixture(scope="module")
def world(tmp_path_factory, state, operator):
    folder = tmp_path_factory.mktemp("sets")
    wheel = make_wheel(folder)
    (folder / "pip.conf").write_text(PLAIN)
    env = {**operator, "PIP_CONFIG_FILE": str(folder / "pip.conf")}
    policies = {"web": POLICY} | ({"js": SCRIPTS} if has_npm() else {})
    with served_world(folder, policies, lambda outside: [serve_index(outside, port, wheel) for port in (80, 8080)],
                      words=["--state", state], env=env) as daemon:
        daemon.index, daemon.registry = daemon.servers
        yield daemon


def sets_of(glovebox, operator, state, *words):
    return glovebox("policy", "sets", *words, env={**operator, "GLOVEBOX_STATE": str(state)})


class TestFiles:
    def test_a_set_is_what_the_client_of_this_host_asks(self, glovebox, operator, tmp_path):
        said = sets_of(glovebox, operator, tmp_path, "--json", "pip")
        [found] = json.loads(said.stdout)
        assert found["allow"] == ["index.example.org:80", "more.example.org:443", "third.example.org:8081"], said
        assert found["env"]["PIP_INDEX_URL"] == "http://index.example.org/simple"
        assert found["env"]["PIP_TRUSTED_HOST"] == "index.example.org third.example.org"
        assert found["env"]["PIP_EXTRA_INDEX_URL"] == "https://more.example.org/simple http://third.example.org:8081/simple"
        assert b"secret" not in said.stdout and b"token" not in said.stdout
        assert "secret" not in (tmp_path / "policies/sets/pip.yaml").read_text()
        assert json.loads(sets_of(glovebox, operator, tmp_path, "--json", "npm").stdout)[0]["allow"] == [
            "npm.example.org:8080", "mine.example.org:443"]

    def test_where_nothing_is_configured_the_public_set_counts(self, glovebox, operator, tmp_path):
        bare = {**operator, "PIP_CONFIG_FILE": "/dev/null"}
        for env in (operator, bare):  # what was written before is taken away
            [said] = json.loads(sets_of(glovebox, env, tmp_path, "--json", "pip").stdout)
        assert not (tmp_path / "policies/sets/pip.yaml").exists()
        assert said["allow"] == ["pypi.org:443", "files.pythonhosted.org:443"]
        assert said["env"]["PIP_INDEX_URL"] == "https://pypi.org/simple"

    @pytest.mark.parametrize("index, more, allow", [
        ("https://pypi.org/simple", "", ["pypi.org:443", "files.pythonhosted.org:443"]),
        ("https://index.example.org/simple", "", ["index.example.org:443"]),
        ("https://index.example.org/simple", "https://pypi.org/simple",
         ["index.example.org:443", "pypi.org:443", "files.pythonhosted.org:443"])])
    def test_the_public_index_brings_the_host_of_its_files_and_a_mirror_does_not(self, glovebox, operator, tmp_path, index, more,
                                                                                 allow):
        env = {**operator, "PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": index, "PIP_EXTRA_INDEX_URL": more}
        assert json.loads(sets_of(glovebox, env, tmp_path, "--json", "pip").stdout)[0]["allow"] == allow

    @pytest.mark.parametrize("name, hosts", [
        ("pip", {"pypi.org", "files.pythonhosted.org"}), ("npm", {"registry.npmjs.org"}),
        ("apt", {"deb.debian.org", "security.debian.org", "archive.ubuntu.com"}), ("github", {"github.com", "api.github.com"}),
        ("huggingface", {"huggingface.co", "*.hf.co"})])
    def test_each_public_set_can_be_used(self, glovebox, operator, tmp_path, name, hosts):
        """Behind whatever GLOVEBOX_POLICIES names, and without a file in the state folder."""
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine/p.yaml").write_text(f"name: p\ntemplate: t\nlanguages: [python]\nnetwork: {{sets: [{name}]}}\n")
        shown = glovebox("policy", "show", "--json", "p", env={**operator, "GLOVEBOX_STATE": str(tmp_path / "s"),
                                                               "GLOVEBOX_POLICIES": str(tmp_path / "mine")})
        assert hosts <= {rule.split(":")[0] for rule in json.loads(shown.stdout)["network"]["allow"]}, shown

    def test_a_file_of_the_operator_comes_first(self, glovebox, operator, tmp_path):
        (tmp_path / "mine/sets").mkdir(parents=True)
        (tmp_path / "mine/sets/pip.yaml").write_text("name: pip\ndescription: ours\nallow: [{network: 10.9.8.7, ports: [8081]}]\n")
        (tmp_path / "mine/p.yaml").write_text("name: p\ntemplate: t\nlanguages: [python]\nenv: {npm_config_audit: mine}\n"
                                              "network: {allow: [own.example.org], sets: [pip, npm]}\n")
        env = {**operator, "GLOVEBOX_STATE": str(tmp_path / "s"), "GLOVEBOX_POLICIES": str(tmp_path / "mine")}
        assert glovebox("policy", "sets", env=env).returncode == 0
        shown = glovebox("policy", "show", "p", env=env).stdout.decode()
        assert "10.9.8.7/32:8081  (set pip)" in shown and "npm.example.org:8080  (set npm)" in shown
        assert "own.example.org:443\n" in shown and "npm_config_audit=mine" in shown
        asked = json.loads(glovebox("policy", "show", "--json", "p", env=env).stdout)
        assert asked["network"]["sets"] == ["pip", "npm"] and len(asked["network"]["allow"]) == 4

    @pytest.mark.parametrize("text, failure", [
        ("name: other\nallow: [a.b]\n", b"the name differs"), ("name: mine\n", b"the set allows nothing"),
        ("name: mine\nallow: [a.b]\nsets: [pip]\n", b"unknown key"), ("- a\n", b"a set is a mapping"),
        ("name: mine\nallow: [127.0.0.1]\n", b"is an address"), ("name: mine\nallow: [a.b]\nenv: {LD_PRELOAD: x}\n", b"LD_"),
        ("name: mine\nallow: [a.b]\nenv: [x]\n", b"env is a mapping"), (None, b"there is no set 'mine'"),
        ("name: mine\nallow: [a.b]\nenv: {A: [1]}\n", b"no variable"),
        ("name: mine\nallow: [" + ", ".join(f"a{n}.b" for n in range(16)) + "]\n", b"more than 16 rules"),
        ("name: mine\nallow: [{host: a.b, ports: [1, 2, 3, 4, 5, 6, 7, 8]}]\n", b"more than 8 ports")])
    def test_a_policy_whose_set_cannot_be_kept_is_none(self, glovebox, tmp_path, text, failure):
        (tmp_path / "mine/sets").mkdir(parents=True)
        if text:
            (tmp_path / "mine/sets/mine.yaml").write_text(text)
        (tmp_path / "mine/p.yaml").write_text("name: p\ntemplate: t\nlanguages: [python]\n"
                                              "network: {allow: [own.example.org], sets: [mine]}\n")
        said = glovebox("policy", "show", "p", env={"GLOVEBOX_POLICIES": str(tmp_path / "mine"), "GLOVEBOX_STATE": str(tmp_path)})
        assert said.returncode == 125 and failure in said.stderr, said


class PublicIndex(Index):
    """An index whose files are on another host, as those of the public one are."""

    def do_GET(self):
        wheel = self.server.wheel
        host = self.headers["Host"]
        pages = {("pypi.org", "/simple/greet/"): f'<a href="https://files.pythonhosted.org/{wheel.name}">{wheel.name}</a>'.encode(),
                 ("files.pythonhosted.org", f"/{wheel.name}"): wheel.read_bytes()}
        body = pages.get((host, self.path))
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html" if host == "pypi.org" else "application/octet-stream")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")


@pytest.fixture
def public_world(tmp_path_factory, operator):
    folder = tmp_path_factory.mktemp("public")
    cert, key = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    def serve(outside):
        server = serve_index(outside, 443, make_wheel(folder), PublicIndex)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        return [server]
    policy = POLICY.replace("sets: [pip, npm]", "sets: [pip]") + "env: {PIP_TRUSTED_HOST: pypi.org files.pythonhosted.org}\n"
    with tempfile.TemporaryDirectory(prefix="glovebox-public-") as own:
        os.chmod(own, 0o755)
        os.symlink(STATE / "templates", f"{own}/templates")
        with served_world(folder, {"web": policy}, serve, words=["--state", own],
                          env={**operator, "PIP_CONFIG_FILE": "/dev/null"}) as daemon:
            yield daemon


needs_pip = pytest.mark.skipif(not has_pip(), reason="the template python is older than its recipe, which has pip now")


@needs_pip
class TestInstalls:
    def test_pip_installs_from_the_index_and_from_nowhere_else(self, world):
        result = world.run("pip3 install --quiet greet 2>&1 && python3 -c 'import greet; print(greet.hello())'\n"
                           "python3 -c 'import urllib.request as web; web.urlopen(\"http://evil.example.org/simple/\")' 2>&1 | tail -n 1",
                           language="bash")
        # pip may warn before that it tried twice: on a busy machine a name is answered late
        assert result["stdout"].splitlines()[-2:] == ["hello from a wheel", "urllib.error.HTTPError: HTTP Error 403: Forbidden"], \
            {name: result[name] for name in ("status", "limit", "error", "stdout", "stderr", "usage")}
        allowed = {(one["host"], one["rule"]) for one in result["network"] if one["decision"] == "allow"}
        assert allowed == {("index.example.org", "index.example.org:80")}, result["network"]
        assert [one["host"] for one in result["network"] if one["decision"] == "deny"] == ["evil.example.org"]
        assert all(secret is None for _, _, secret in world.index.asked), "the operator's password went out of a sandbox"

    def test_pip_installs_from_the_public_index_where_the_host_has_none(self, public_world):
        result = public_world.run("pip3 install --quiet greet 2>&1 && python3 -c 'import greet; print(greet.hello())'", language="bash")
        assert result["stdout"].splitlines()[-1:] == ["hello from a wheel"], result
        assert {one["host"] for one in result["network"]} == {"pypi.org", "files.pythonhosted.org"}

    def test_a_cell_imports_what_it_installed(self, world):
        result = world.run("!pip install --quiet greet\nimport greet\nprint(greet.hello())", mode="cell")
        assert result["status"] == "ok" and result["stdout"].endswith("hello from a wheel\n"), result


def test_npm_finds_its_registry(world):
    """What `npm install left` asks for, by a program that is none."""
    result = world.run("import json, os, urllib.request as web\nregistry = os.environ['npm_config_registry']\n"
                       "about = json.load(web.urlopen(registry + 'left'))\n"
                       "import hashlib\nprint(hashlib.sha1(web.urlopen(about['versions']['1.0.0']['dist']['tarball']).read()).hexdigest())")
    assert result["stdout"] == hashlib.sha1(TARBALL).hexdigest() + "\n", result


@pytest.mark.skipif(not has_npm(), reason="the template node is not built, or older than its recipe, which has npm now")
class TestNpm:
    PROGRAM = "npm install --silent left >said 2>&1 || cat said\nnode -e 'console.log(require(\"left\")(\"in\", 6))'\nls node_modules/left"

    def test_npm_installs_from_the_registry_and_from_nowhere_else(self, world):
        result = world.run(self.PROGRAM + "\nnpm install --silent --registry http://evil.example.org/ right >said 2>&1; echo $?",
                           language="bash", policy="js")
        lines = result["stdout"].splitlines()
        assert lines[:4] == ["in<<<<", "installed", "left.js", "package.json"] and lines[-1] != "0", result
        allowed = {(one["host"], one["rule"]) for one in result["network"] if one["decision"] == "allow"}
        assert allowed == {("npm.example.org", "npm.example.org:8080")}, result["network"]
        assert {one["host"] for one in result["network"] if one["decision"] == "deny"} == {"evil.example.org"}

    def test_a_session_keeps_what_it_installed(self, world):
        status, text = world.call("POST", "/v1/sessions", json.dumps({"policy": "js"}).encode())
        assert status == 201, text
        session = json.loads(text)["id"]
        for code, says in ((self.PROGRAM, "in<<<<"), ("node -e 'console.log(require(\"left\")(\"kept\", 6))'", "kept<<")):
            _, text = world.call("POST", f"/v1/sessions/{session}/contexts/bash/run", json.dumps({"code": code}).encode())
            result = json.loads(text)
            assert result["status"] == "ok" and says in result["stdout"], result
        world.call("DELETE", f"/v1/sessions/{session}")


def test_sets_are_read_again_with_the_policies(world, operator, state):
    log = world.log
    npmrc = os.path.join(operator["HOME"], ".npmrc")
    with open(npmrc, "w", encoding="utf-8") as file:
        file.write("registry=http://index.example.org/\n")
    world.process.send_signal(signal.SIGHUP)
    for _ in range(200):
        log.seek(0)
        if "web changed" in log.read():  # and js, where a template has npm
            break
        time.sleep(0.05)
    else:
        log.seek(0)
        raise AssertionError(log.read())
    result = world.run("import os\nprint(os.environ['npm_config_registry'])")
    assert result["stdout"] == "http://index.example.org/\n", result

"""Policies that intercept TLS, end to end: unmodified programs in a sandbox under `glovebox serve`."""

import contextlib
import os
import signal
import ssl
import threading
import time

import pytest

from conftest import STATE
from internet import Web, certificate, serve_web
from served_rig import served_world
from session_rig import Session
from test_network import egress_of
from test_session_network import Place

POLICY = """name: web
extends: data
description: a host whose TLS is opened, and one whose is not
network:
  allow:
    - {host: api.example.org, methods: [GET], paths: ["/repos/"], intercept: true}
    - {host: files.example.org}
"""

URLLIB = """import urllib.request
def get(url):
    try: return urllib.request.urlopen(url, timeout=20).read().decode()
    except urllib.error.HTTPError as e: return f"{e.code} {e.read().decode().strip()}"
    except OSError as e: return str(e)
"""
BUNDLE = "/run/certificates.pem"
VARIABLES = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "NODE_EXTRA_CA_CERTS"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    if not (STATE / "templates" / "python").exists():
        pytest.skip("needs the template python")
    folder = tmp_path_factory.mktemp("intercepted")
    cert, key = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with served_world(folder, {"web": POLICY}, lambda outside: [serve_web(outside, 443, context)], words=["--ca-file", cert]) as daemon:
        daemon.cert = cert.read_text()
        yield daemon
    Web.seen.clear()  # others look at it as well


def told(result):
    return [(one["host"], one["decision"], one["intercepted"], one["method"], one["path"], one["status"])
            for one in result["network"]]


@pytest.mark.parametrize("how", [{}, {"cold": True}, {"mode": "cell"}])
def test_unmodified_code_is_intercepted(world, how):
    result = world.run(URLLIB + "print(get('https://api.example.org/repos/x?q=1'))\nprint(get('https://api.example.org/user'))", **how)
    first, second = result["stdout"].splitlines()
    assert first == "hello from api.example.org", result
    assert second.startswith("403 glovebox: api.example.org:443 is refused: the policy does not allow this path here"), result
    assert told(result) == [("api.example.org", "allow", True, "GET", "/repos/x", 200),
                            ("api.example.org", "deny", True, "GET", "/user", 0)]
    assert result["network"][0]["rule"] == "api.example.org:443 GET /repos/ intercepted"
    assert [one["target"] for one in result["denials"]] == ["api.example.org:443"], result
    proof = world.receipt(result)["predicate"]["network"]
    assert [(one["host"], one["intercepted"], one["path"]) for one in proof] == [
        ("api.example.org", True, "/repos/x"), ("api.example.org", True, "/user")]


def test_programs_trust_it_and_their_system_as_well(world):
    result = world.run("import os, ssl, subprocess, requests\n"
                       "print(requests.get('https://api.example.org/repos/r').text)\n"
                       "print(requests.post('https://api.example.org/repos/r').status_code)\n"
                       "print(subprocess.run(['git', 'ls-remote', 'https://api.example.org/repos/g'], capture_output=True, text=True).stderr)\n"
                       "print(subprocess.run(['pip', 'download', '--no-deps', '-qq', '--disable-pip-version-check', '--index-url',\n"
                       "  'https://api.example.org/repos/simple', 'nothing'], capture_output=True, text=True).stderr)\n"
                       f"assert all(os.environ[name] == '{BUNDLE}' for name in {VARIABLES})\n"
                       "print(len(ssl.create_default_context().get_ca_certs()) > 50, os.stat(os.environ['SSL_CERT_FILE']).st_mode & 0o777 == 0o444)")
    lines = result["stdout"].splitlines()
    assert lines[:2] == ["hello from api.example.org", "403"] and lines[-1] == "True True", result
    assert "certificate" not in result["stdout"].lower() and "No matching distribution" in result["stdout"], result
    assert [(path, status) for *_, path, status in told(result)] == [
        ("/repos/r", 200), ("/repos/r", 0), ("/repos/g/info/refs", 200), ("/repos/g/HEAD", 200), ("/repos/simple/nothing/", 200)]


def test_what_is_not_intercepted_stays_between_code_and_host(world):
    result = world.run(URLLIB + "print(get('https://files.example.org/x'))\nimport ssl\n"
                       "print(urllib.request.urlopen('https://files.example.org/x', context=ssl.create_default_context(cafile='cert')).read())",
                       files=[{"path": "cert", "content": world.cert}])
    first, second = result["stdout"].splitlines()
    assert "CERTIFICATE_VERIFY_FAILED" in first and second == "b'hello from files.example.org'", result
    assert told(result) == 2 * [("files.example.org", "allow", False, "CONNECT", "/", 0)]


def test_a_client_that_pins_certificates_is_refused_and_reported(world):
    result = world.run("import socket, ssl\ntry: ssl.create_default_context(cafile='cert').wrap_socket(\n"
                       "  socket.create_connection(('api.example.org', 443)), server_hostname='api.example.org')\n"
                       "except ssl.SSLError as e: print(e)",
                       files=[{"path": "cert", "content": world.cert}])
    assert "CERTIFICATE_VERIFY_FAILED" in result["stdout"], result
    [one] = result["network"]
    assert one["intercepted"] and "does not trust the certificates of this run" in one["reason"], result


def test_no_key_lies_in_the_sandbox_and_no_run_trusts_another(world):
    look = (f"text = open('{BUNDLE}').read()\nprint(text[:text.index('-----END')])\nimport subprocess\n"
            "found = subprocess.run(['grep', '-rlsE', 'PRIVATE KEY-----', '/run', '/tmp', '/workspace', '/home'], capture_output=True, text=True)\n"
            "print([name for name in found.stdout.split() if not name.startswith('/run/main')])")
    first, second = (world.run(look)["stdout"] for _ in range(2))
    assert "BEGIN CERTIFICATE" in first and "KEY" not in first and first != second
    assert first.splitlines()[-1] == "[]", first


def test_a_request_keeps_the_interception_of_its_policy(world):
    code = URLLIB + "for path in ('repos/x', 'repos/y'): print(get(f'https://api.example.org/{path}')[:5])"
    less = world.run(code, network={"allow": [{"host": "api.example.org", "paths": ["/repos/x"], "intercept": True}]})
    assert less["stdout"] == "hello\n403 g\n", less
    same = world.run(code, network={"allow": ["api.example.org"]})
    assert same["stdout"] == "hello\nhello\n" and all(one["intercepted"] for one in same["network"]), same
    status, answer = world.post({"code": code, "policy": "web", "network": {"allow": [
        {"host": "files.example.org", "intercept": True}]}})
    assert status == 403 and "files.example.org:443 intercepted" in answer["error"]["message"], answer
    none = world.run("import os; print(os.path.exists('/run/certificates.pem'), 'SSL_CERT_FILE' in os.environ)",
                     network={"allow": ["files.example.org"]})
    assert none["stdout"] == "False False\n", none


def test_a_session_has_one_authority_until_glovebox_egress_comes_back(world):
    status, answer = Place(world).call("POST", "/v1/sessions", {"policy": "web"})
    assert status == 201, answer
    session = Session(Place(world), answer)
    try:
        read = f"print(open('{BUNDLE}').read()[:400])"
        first = session.run(read)["stdout"]
        assert session.run(URLLIB + "print(get('https://api.example.org/repos/1'))")["stdout"] == "hello from api.example.org\n"
        assert session.run(read)["stdout"] == first
        before = egress_of(world)
        assert session.call("POST", "/pause")[0] == 200
        os.kill(before, signal.SIGKILL)
        for _ in range(100):  # it comes back while the session stands still
            with contextlib.suppress(ValueError, OSError):
                if egress_of(world) != before:
                    break
            time.sleep(0.05)
        assert session.call("POST", "/resume")[0] == 200
        for _ in range(100):
            if (second := session.run(read)["stdout"]) != first:
                break
            time.sleep(0.1)
        assert second != first and "BEGIN CERTIFICATE" in second
        again = session.run(URLLIB + "print(get('https://api.example.org/repos/2'))")
        assert again["stdout"] == "hello from api.example.org\n", again
    finally:
        session.end()


def test_a_run_does_not_begin_without_what_it_is_to_trust(world):
    egress = egress_of(world)
    os.kill(egress, signal.SIGSTOP)  # the way is asked for, and no certificate comes
    results = []
    waiting = threading.Thread(target=lambda: results.append(world.run("print('it ran')")))
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive() and not results
    os.kill(egress, signal.SIGKILL)
    waiting.join(30)
    [lost] = results
    assert lost["status"] != "ok" and lost["stdout"] == "" and "glovebox-egress ended before the code began" in str(lost), lost
    assert world.run("print('it ran')")["stdout"] == "it ran\n"

"""Access tokens of a trusted issuer in addition to API keys: what they allow, and which tokens are refused."""

import base64
import hmac
import json
import os
import socket
import subprocess
import time

import pytest
from conftest import Glovebox
from mcp_client import META, Stateless, text_of
from serving import Serving, state_of_its_own
from test_mcp import wait_for
from test_mcp_subscriptions import subscribe
from test_revoked_keys import ends_within

pytestmark = pytest.mark.usefixtures("python_template")

ISSUER = "https://login.example.com"
AUDIENCE = "https://sandbox.example.com/mcp"


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """An authorization server's key: signs with RS256."""

    def __init__(self, folder, name):
        self.name, self.file = name, folder / f"{name}.pem"
        subprocess.run(["openssl", "genrsa", "-out", self.file, "2048"], check=True, capture_output=True)
        told = subprocess.run(["openssl", "rsa", "-in", self.file, "-noout", "-modulus"], check=True, capture_output=True, text=True).stdout
        self.modulus = bytes.fromhex(told.strip().partition("=")[2])

    def jwk(self):
        return {"kty": "RSA", "kid": self.name, "use": "sig", "alg": "RS256", "n": base64url(self.modulus), "e": "AQAB"}

    def sign(self, text):
        return subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.file], input=text.encode(), check=True, capture_output=True).stdout

    def token(self, header=None, signature=None, **claims):
        head = {"alg": "RS256", "kid": self.name, "typ": "at+jwt"} | (header or {})
        usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": int(time.time()) + 300, "scope": "glovebox:run glovebox:sessions"}
        said = {name: value for name, value in (usual | claims).items() if value is not None}
        text = ".".join(base64url(json.dumps(part).encode()) for part in (head, said))
        return text + "." + base64url(self.sign(text) if signature is None else signature(text))


def write_keys(path, *issuers):
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"keys": [issuer.jwk() for issuer in issuers]}))
    fresh.chmod(0o644)
    fresh.replace(path)


@pytest.fixture(name="place", scope="module")
def place_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("oauth"))
    state_of_its_own(glovebox)
    return glovebox


@pytest.fixture(name="issuer", scope="module")
def issuer_(place):
    return Issuer(place.folder, "k1")


@pytest.fixture(name="service", scope="module")
def service_(place, issuer):
    keys = place.folder / "keys.json"
    write_keys(keys, issuer)
    with Serving(place, "--oauth-issuer", ISSUER, "--oauth-audience", AUDIENCE, "--oauth-keys", str(keys)) as serving:
        serving.keys = keys
        yield serving


def ask(service, token):
    return service.call("GET", "/v1/runs", key=token)


def test_a_token_runs_code(service, issuer):
    client = Stateless(service, issuer.token())
    assert text_of(client.tool("run_code", code="print(1)", policy="minimal")).startswith("1\n")
    assert {"run_code", "session_open"} <= {tool["name"] for tool in client.ask("tools/list")["result"]["tools"]}
    assert ask(service, issuer.token()).json["runs"]


def test_subjects_are_tenants_of_their_own(service, issuer):
    run = Stateless(service, issuer.token(sub="bob")).tool("run_code", code="1", policy="minimal")["structuredContent"]["id"]
    assert Stateless(service, issuer.token(sub="bob")).tool("run_status", run_id=run)["structuredContent"]["id"] == run
    for other in (issuer.token(sub="bob "), issuer.token(sub="Bob"), service.key("--scope", "run,sessions")):
        assert Stateless(service, other).tool("run_status", run_id=run)["isError"]


def test_scopes_are_mapped_and_what_decides_needs_a_key(service, issuer):
    runs = Stateless(service, issuer.token(scope="openid glovebox:run"))
    names = {tool["name"] for tool in runs.ask("tools/list")["result"]["tools"]}
    assert "run_code" in names and "session_open" not in names
    assert service.call("GET", "/v1/sessions", key=issuer.token(scope="glovebox:run")).status == 403
    for scope in ("", "run", "glovebox:admin", "glovebox:approve", "glovebox:runs", None):
        answer = ask(service, issuer.token(scope=scope))
        assert answer.status == 403, scope
        challenge = answer.headers["WWW-Authenticate"]
        assert 'error="insufficient_scope"' in challenge and "glovebox:run" in challenge and "resource_metadata=" in challenge
    every = issuer.token(scope="glovebox:run glovebox:sessions glovebox:audit glovebox:approve glovebox:admin")
    assert service.call("GET", "/metrics", key=every).status == 200
    assert service.call("POST", "/v1/approvals/apr_1:decide", {"decision": "approve"}, key=every).status == 403


def test_scopes_bound_the_policies_of_a_token(service, issuer):
    bounded = issuer.token(scope="glovebox:run glovebox:sessions glovebox:policy:minimal")
    client = Stateless(service, bounded)
    assert text_of(client.tool("run_code", code="print(1)", policy="minimal")).startswith("1\n")
    for tool, arguments in (("run_code", {"code": "1"}), ("run_command", {"command": "true"}), ("session_open", {})):
        for policy in ("data", "minimal,data", "default"):
            refused = client.tool(tool, **arguments, policy=policy)
            assert refused["isError"] and "policy" in text_of(refused), (tool, policy, refused)
    # Without a word about it: the one that the token is bounded to.
    run = client.tool("execute_python", code="print(1)")["structuredContent"]["id"]
    assert service.call("GET", f"/v1/runs/{run}", key=bounded).json["policy"]["name"].startswith("minimal")
    assert service.call("POST", "/v1/runs", {"code": "1", "policy": "data"}, key=bounded).status == 403
    assert service.call("POST", "/v1/runs", {"code": "1", "policy": "minimal"}, key=bounded).status == 200
    # Another token of the same subject has its own bound, before and after.
    free = issuer.token()
    assert service.call("POST", "/v1/runs", {"code": "1", "policy": "minimal"}, key=free).status == 200
    assert service.call("POST", "/v1/runs", {"code": "1", "policy": "data"}, key=bounded).status == 403
    for scope in ("glovebox:run glovebox:policy:", "glovebox:run glovebox:policy:a,minimal", "glovebox:run glovebox:policy:" + "x" * 600):
        assert ask(service, issuer.token(scope=scope)).status == 401, scope


def test_a_request_keeps_the_scopes_of_its_own_token(service, issuer):
    """Its header has come; before its body has, another token of the same subject asks for what this one may not."""
    narrow, wide = issuer.token(scope="glovebox:run"), issuer.token(scope="glovebox:run glovebox:sessions")
    client = Stateless(service, narrow)
    message = client.message("tools/call", {"name": "session_open", "arguments": {"policy": "minimal"}})
    body = json.dumps(message).encode()
    head = {"Host": "127.0.0.1", "Authorization": f"Bearer {narrow}", "Content-Type": "application/json",
            "Content-Length": str(len(body)), "Connection": "close"} | client.headers(message)
    with socket.create_connection(("127.0.0.1", service.port), 60) as peer:
        text = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        peer.sendall(f"POST /mcp HTTP/1.1\r\n{text}\r\n".encode() + body[:5])
        time.sleep(0.3)  # the header has been read
        assert service.call("GET", "/v1/sessions", key=wide).status == 200
        peer.sendall(body[5:])
        answer = b"".join(iter(lambda: peer.recv(65536), b""))
    assert b"scope" in answer and b" 401 " not in answer and b"ses_" not in answer, answer
    assert not service.call("GET", "/v1/sessions", key=wide).json["sessions"]


def confused(issuer):
    """HMAC with the public key as its secret, in every form that a library might take it in."""
    pem = subprocess.run(["openssl", "rsa", "-in", issuer.file, "-pubout"], check=True, capture_output=True).stdout
    for secret in (pem, pem.strip(), json.dumps(issuer.jwk()).encode(), issuer.modulus, b""):
        yield issuer.token({"alg": "HS256"}, lambda text, secret=secret: hmac.digest(secret, text.encode(), "sha256"))


def test_what_is_no_token_of_the_issuer_is_refused(service, issuer, tmp_path):
    stranger = Issuer(tmp_path, "k1")
    good = issuer.token()
    head, claims, signature = good.split(".")
    other = base64url(json.dumps({"iss": ISSUER, "aud": AUDIENCE, "sub": "root", "exp": 9999999999, "scope": "glovebox:run"}).encode())
    tokens = [
        issuer.token({"alg": "none"}, lambda _: b""), issuer.token({"alg": "nOnE"}, lambda _: b""), issuer.token(signature=lambda _: b""),
        base64url(b'{"alg":"none"}') + "." + claims + ".", f"{head}.{other}.{signature}", f"{head}.{claims}.", f"{head}.{claims}", f"{good}.x", good + "=",
        *confused(issuer), stranger.token(), stranger.token({"jwk": stranger.jwk()}), stranger.token({"jku": "https://evil.example/keys", "kid": "k9"}),
        issuer.token({"kid": "../k1"}), issuer.token({"kid": "k1' OR 1"}), issuer.token({"crit": ["b64"], "b64": False}), issuer.token({"typ": "logout+jwt"}),
        issuer.token(exp=int(time.time()) - 1), issuer.token(exp=None), issuer.token(exp="never"), issuer.token(nbf=int(time.time()) + 3600),
        issuer.token(aud="https://other.example.com/mcp"), issuer.token(aud=[]), issuer.token(aud=None), issuer.token(aud=AUDIENCE + "/"),
        issuer.token(iss="https://login.example.com.evil.example"), issuer.token(iss=None), issuer.token(sub=None), issuer.token(sub=""), issuer.token(sub="x" * 300)]
    for token in tokens:
        answer = ask(service, token)
        assert answer.status == 401, token
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"], answer.headers
        assert token not in answer.body.decode()
    assert ask(service, "x" * 9000 + ".y.z").status in (401, 431)
    assert ask(service, good).status == 200
    said = service.log.read_text()
    assert signature not in said and good not in said


def test_a_token_in_the_query_or_the_body_is_none(service, issuer):
    token = issuer.token()
    for path in (f"/v1/runs?access_token={token}", f"/v1/runs?token={token}", f"/mcp?access_token={token}"):
        assert service.call("GET", path, tcp=True).status in (400, 401)
    message = Stateless(service).message("tools/list", {"access_token": token})
    assert service.call("POST", f"/mcp?access_token={token}", message, headers=Stateless(service).headers(message), tcp=True).status in (400, 401)
    assert service.call("POST", "/mcp", message, headers=Stateless(service).headers(message), tcp=True).status == 401


def test_without_a_token_the_answer_names_the_authorization_server(service):
    message = Stateless(service).message("tools/list")
    answer = service.call("POST", "/mcp", message, headers=Stateless(service).headers(message), tcp=True)
    assert answer.status == 401
    where = "https://sandbox.example.com/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{where}"' in answer.headers["WWW-Authenticate"] and "error=" not in answer.headers["WWW-Authenticate"]
    for path in ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"):
        told = service.call("GET", path, tcp=True)
        assert told.status == 200 and told.headers["Content-Type"].startswith("application/json")
        assert told.json == {"resource": AUDIENCE, "authorization_servers": [ISSUER], "bearer_methods_supported": ["header"],
                             "scopes_supported": ["glovebox:run", "glovebox:sessions", "glovebox:audit"], "resource_name": "glovebox"}
    assert service.call("GET", "/.well-known/oauth-protected-resource/other", tcp=True).status == 404


def test_tasks_of_another_subject_do_not_exist(service, issuer):
    tasks = {"extensions": {META + "tasks": {}}}
    call = {"name": "run_code", "arguments": {"code": "import time; time.sleep(8)", "policy": "minimal"}}
    mine = Stateless(service, issuer.token(), tasks).ask("tools/call", call)["result"]["taskId"]
    assert Stateless(service, issuer.token(), tasks).ask("tasks/get", {"taskId": mine})["result"]["status"] == "working"
    for other in (issuer.token(sub="eve"), service.key("--scope", "run,sessions")):
        for method in ("tasks/get", "tasks/cancel"):
            assert Stateless(service, other, tasks).ask(method, {"taskId": mine})["error"]["code"] == -32602
    no_scope = Stateless(service, issuer.token(scope="glovebox:audit"), tasks).ask("tasks/get", {"taskId": mine})
    assert no_scope["error"]["code"] == -32602
    Stateless(service, issuer.token(), tasks).ask("tasks/cancel", {"taskId": mine})


def test_keys_of_the_issuer_may_change_while_the_service_runs(service, issuer, tmp_path):
    fresh = Issuer(tmp_path, "k2")
    tokens = {"old": issuer.token(exp=int(time.time()) + 3600), "new": fresh.token(exp=int(time.time()) + 3600)}

    def settles(**statuses):
        end = time.monotonic() + 12
        while (said := {name: ask(service, token) for name, token in tokens.items()}) and time.monotonic() < end:
            if {name: answer.status for name, answer in said.items()} == statuses:
                return True
            time.sleep(0.02)
        raise AssertionError({name: (answer.status, answer.body) for name, answer in said.items()} | {"log": service.log.read_text()[-2000:]})

    assert settles(old=200, new=401)
    write_keys(service.keys, issuer, fresh)
    assert settles(old=200, new=200)
    write_keys(service.keys, fresh)
    assert settles(old=401, new=200)
    service.keys.write_text("{")
    time.sleep(2)
    assert settles(old=401, new=200), "keys that were good stay"
    write_keys(service.keys, issuer)
    assert settles(old=200, new=401)


def test_a_file_of_keys_that_cannot_be_used_stands_in_the_log(tmp_path, issuer):
    """At the start, and when it breaks while keys that were good stay: no caller would tell of that."""
    glovebox = Glovebox(tmp_path)
    state_of_its_own(glovebox)
    keys = tmp_path / "keys.json"
    with Serving(glovebox, "--oauth-issuer", ISSUER, "--oauth-audience", AUDIENCE, "--oauth-keys", str(keys)) as service:
        wait_for(lambda: "oauth.keys_refused" in service.log.read_text() and "No such file" in service.log.read_text())
        answer = ask(service, issuer.token())
        assert answer.status == 401 and "no token can be checked" in answer.json["error"]["message"]
        write_keys(keys, issuer)
        wait_for(lambda: ask(service, issuer.token()).status == 200)
        keys.write_text("{")
        wait_for(lambda: ask(service, issuer.token()).status == 200 and service.log.read_text().count("oauth.keys_refused") == 2)
        assert ask(service, issuer.token(scope=None)).json["error"]["message"].endswith("has none")


def test_without_an_issuer_no_token_is_taken(tmp_path, issuer):
    glovebox = Glovebox(tmp_path)
    state_of_its_own(glovebox)
    with Serving(glovebox) as service:
        answer = ask(service, issuer.token())
        assert answer.status == 401 and "oauth_issuer" in answer.json["error"]["message"]
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="glovebox"'
        assert service.call("GET", "/.well-known/oauth-protected-resource", tcp=True).status == 404


@pytest.mark.parametrize("options", [["--oauth-issuer", ISSUER], ["--oauth-audience", AUDIENCE], ["--oauth-keys", "/x"],
                                     ["--oauth-issuer", "http://login.example.com", "--oauth-audience", AUDIENCE, "--oauth-keys", "/x"],
                                     ["--oauth-issuer", ISSUER, "--oauth-audience", AUDIENCE, "--oauth-keys", "x"]])
def test_half_of_the_settings_is_an_error(tmp_path, options):
    glovebox = Glovebox(tmp_path)
    state_of_its_own(glovebox)
    process = glovebox.start("serve", "--socket", str(tmp_path / "s"), *options, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, env=dict(os.environ))
    said, _ = process.communicate(timeout=30)
    assert process.returncode != 0 and b"oauth_" in said, said


def test_a_stream_ends_with_its_token(service, issuer):
    """Within ten seconds of the moment in which the token would be refused; the subject's other tokens go on."""
    now = int(time.time())
    streams = [subscribe(service, Stateless(service, {"key": issuer.token(exp=end)}), number)[0]
               for number, end in enumerate((now + 6, now + 300))]
    assert ends_within(streams[0], 30)
    assert not ends_within(streams[1], 1), "its token is good"
    for stream in streams:
        stream.close()

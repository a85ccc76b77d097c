"""A daemon behind a proxy and called by web pages: names and origins that its operator lists, and /readyz."""

import http.client
import json
import shutil
import socket
import subprocess
import time

import pytest

from conftest import BUILD, TOP, Glovebox
from serving import Serving, free_port, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")

APP = "https://app.example.com"


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("proxy"))
    state_of_its_own(glovebox)
    with Serving(glovebox, "--public-hosts", "box.example.com,other.example", "--allowed-origins", APP) as service:
        yield service


def ask(service, method="GET", path="/healthz", **headers):
    return service.open(method, path, tcp=True, headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize("host, status", [
    ("box.example.com", 200), ("BOX.example.com:443", 200), ("localhost", 200),
    ("box.example.com.evil.example", 403), ("a.box.example.com", 403), ("box.example.com:x", 403), ("", 403),
])
def test_host_that_a_proxy_passes_on(service, host, status):
    assert ask(service, Host=host).status == status


def test_names_change_with_a_reload(glovebox):
    state_of_its_own(glovebox)
    file = glovebox.folder / "g.yaml"
    file.write_text("public_hosts: one.example\n")
    with Serving(glovebox, "--config", file) as service:
        assert [ask(service, Host=host).status for host in ("one.example", "two.example")] == [200, 403]
        file.write_text("public_hosts: two.example\n")
        service.reload()
        assert [ask(service, Host=host).status for host in ("one.example", "two.example")] == [403, 200]


def test_page_of_an_allowed_origin(service):
    asked = ask(service, "OPTIONS", "/v1/runs", Origin=APP, Access_Control_Request_Method="POST",
                Access_Control_Request_Headers="authorization,content-type")
    assert asked.status == 204 and asked.headers["Access-Control-Allow-Origin"] == APP
    assert "POST" in asked.headers["Access-Control-Allow-Methods"]
    assert {"Authorization", "Content-Type"} <= set(asked.headers["Access-Control-Allow-Headers"].split(", "))
    done = service.open("POST", "/v1/runs", {"code": "print(1)", "policy": "minimal"}, key=service.key(),
                        headers={"Origin": APP})
    assert (done.status, done.headers["Access-Control-Allow-Origin"], done.headers["Vary"]) == (200, APP, "Origin")


def test_page_can_read_why_it_was_refused(service):
    for path, status in (("/v1/policies", 401), ("/nowhere", 404)):
        answer = ask(service, path=path, Origin=APP)
        assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (status, APP)
    early = ask(service, "POST", "/v1/runs", Origin=APP, Content_Length="99999999999")
    assert (early.status, early.headers["Access-Control-Allow-Origin"]) == (401, APP)


@pytest.mark.parametrize("origin", ["http://app.example.com", APP + ":8443", APP + ".evil.example", "null", "",
                                    "https://box.example.com", APP + "," + APP])
def test_pages_of_others(service, origin):
    for method in ("GET", "OPTIONS"):
        answer = ask(service, method, Origin=origin, Access_Control_Request_Method="GET")
        assert answer.status == 403 and "Access-Control-Allow-Origin" not in answer.headers


def test_no_cors_headers_without_an_origin(service):
    assert not [name for name in ask(service).headers if name.lower().startswith("access-control")]
    own = ask(service, Origin="http://localhost").headers
    assert "Access-Control-Allow-Origin" not in own


@pytest.fixture(name="nginx")
def nginx_(service, tmp_path):
    """The lines of the page in a server of its own. Gives  its port."""
    if not shutil.which("nginx"):
        pytest.skip("nginx is not installed")
    page = (TOP / "docs/operating.md").read_text().split("nginx, within")[1]
    lines = page.split("```\n")[1].replace("127.0.0.1:7070", f"127.0.0.1:{service.port}")
    port = free_port()
    (tmp_path / "nginx.conf").write_text(f"""daemon off; master_process off; pid {tmp_path}/pid; error_log {tmp_path}/error.log;
events {{}}
http {{ access_log off; client_body_temp_path {tmp_path}/1; proxy_temp_path {tmp_path}/2; fastcgi_temp_path {tmp_path}/3;
uwsgi_temp_path {tmp_path}/4; scgi_temp_path {tmp_path}/5;
server {{ listen 127.0.0.1:{port}; server_name box.example.com;
{lines} }} }}
""")
    process = subprocess.Popen(["nginx", "-p", tmp_path, "-c", tmp_path / "nginx.conf", "-e", tmp_path / "error.log"])
    try:
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < end, (tmp_path / "error.log").read_text()
                time.sleep(0.02)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=30)


def by_proxy(port, key, method, path, body=None, host="box.example.com"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Host": host, "Authorization": "Bearer " + key["key"]}
    connection.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body), headers)
    return connection.getresponse()


def test_nginx_passes_on_runs_events_and_files(service, nginx):
    key = service.key("--scope", "run,sessions")
    done = by_proxy(nginx, key, "POST", "/v1/runs", {"code": "print(6 * 7)", "policy": "minimal"})
    assert done.status == 200 and json.loads(done.read())["stdout"] == "42\n"
    assert by_proxy(nginx, key, "GET", "/readyz", host="evil.example").status == 403
    session = json.loads(by_proxy(nginx, key, "POST", "/v1/sessions", {"policy": "minimal"}).read())["id"]
    big = bytes(range(256)) * (8 << 12)  # 8 MiB, more than nginx takes without client_max_body_size
    assert by_proxy(nginx, key, "PUT", f"/v1/sessions/{session}/files/big", big).status in (200, 201, 204)
    assert by_proxy(nginx, key, "GET", f"/v1/sessions/{session}/files/big").read() == big
    code = "import os, time\nprint('first', flush=True)\nwhile not os.path.exists('/workspace/go'): time.sleep(0.01)\nprint('last')"
    ran = by_proxy(nginx, key, "POST", f"/v1/sessions/{session}/contexts/python/run?stream=1", {"code": code})
    seen = b""
    while b"first" not in seen:  # the cell waits for what is sent after this
        line = ran.readline()
        assert line, seen
        seen += line
    assert by_proxy(nginx, key, "PUT", f"/v1/sessions/{session}/files/go", b"").status in (200, 201, 204)
    assert b"last" in ran.read()
    assert by_proxy(nginx, key, "DELETE", f"/v1/sessions/{session}").status in (200, 204)


class TestReady:
    def test_a_run_can_begin(self, service):
        answer = service.call("GET", "/readyz")
        assert (answer.status, answer.json["status"], answer.json["cause"]) == (200, "ok", None)
        done = service.glovebox("status", "--daemon", service.socket)
        assert done.returncode == 0 and done.stdout.startswith(b"glovebox ") and b" is ready\n" in done.stdout, done

    def test_every_slot_is_taken(self, glovebox):
        state_of_its_own(glovebox)
        with Serving(glovebox, "--pool-max", "0", tcp=False, slots=2) as service:
            made = [service.call("POST", "/v1/sessions", {"policy": "minimal"}).json["id"] for _ in range(2)]
            answer = service.call("GET", "/readyz")
            assert answer.status == 503 and "every slot is taken: 2 of 2" in answer.json["cause"]
            assert service.call("GET", "/healthz").status == 200
            done = glovebox("status", "--daemon", service.socket)
            assert done.returncode == 1 and done.stderr == f"glovebox: {answer.json['cause']}\n".encode(), done
            assert b" is not ready\n" in done.stdout and b"2 of 2 in use" in done.stdout and b"sessions  2" in done.stdout
            done = glovebox("session", "new", "--policy", "minimal", "--daemon", service.socket, timeout=80)  # waits for a minute
            assert done.returncode == 125 and b"is taken, and none became free in 60 s; try again later, or end a session" in done.stderr, done
            shown = json.loads(glovebox("status", "--json", "--daemon", service.socket).stdout)
            assert (shown["ready"], shown["cause"]) == (False, answer.json["cause"])
            service.call("DELETE", f"/v1/sessions/{made[0]}")
            end = time.monotonic() + 30
            while service.call("GET", "/readyz").status != 200:  # the slot is freed when nothing of it is left
                assert time.monotonic() < end
                time.sleep(0.05)

    def test_the_template_is_not_there(self, glovebox):
        state_of_its_own(glovebox)
        with Serving(glovebox, "--default-policy", "node", tcp=False,
                     env={"GLOVEBOX_POLICIES": node_policy(glovebox)}) as service:
            answer = service.call("GET", "/readyz")
            assert answer.status == 503 and "template no-such-template" in answer.json["cause"]
            assert "glovebox template build no-such-template" in answer.json["cause"]


def node_policy(glovebox):
    folder = glovebox.folder / "policies"
    shutil.copytree(BUILD / "policies", folder)
    (folder / "node.yaml").write_text("name: node\nextends: minimal\ntemplate: no-such-template\ndescription: x\n")
    return str(folder)

"""A daemon behind a proxy and called by web pages: names and origins that its operator lists, and /readyz."""

import json
import shutil
import time

import pytest

from conftest import BUILD, Glovebox
from serving import Serving, state_of_its_own

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


def test_nothing_is_said_without_an_origin(service):
    assert not [name for name in ask(service).headers if name.lower().startswith("access-control")]
    own = ask(service, Origin="http://localhost").headers
    assert "Access-Control-Allow-Origin" not in own


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

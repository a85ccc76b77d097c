"""Every route that is served, for every state of what it names: sessions that start, run, are paused, were deleted, have
expired, were an earlier daemon's, are another tenant's, never were, have no id; and runs, contexts, processes, checkpoints,
approvals, receipts, artifacts, ports and signed URLs with them. Each with its body, with none, and with wrong ones.
gloveboxd lives through all of it, and answers as its document says. The routes and the fields of their bodies come from that
document, right bodies from the rows of test_route_matrix.py, which fails for a new route.

With GLOVEBOX_MATRIX=whole (`make matrix`) each field by itself has each wrong value."""

import http.client
import json
import os
import re
import signal
import threading
import time

import pytest
from conftest import TOP, Glovebox
from described import Description
from serving import Answer, Serving, state_of_its_own
from test_route_matrix import BY_SIGNATURE, EVERY, MATRIX, OPEN, S, place_of, served

pytestmark = pytest.mark.usefixtures("python_template")

SIGNED, PORTS = "/v1/signed/{id}/{path}", S + "/ports/{port}/{path}"
NEVER = {"/v1/runs": "run_" + "0" * 32, "/v1/sessions": "ses_" + "0" * 32, "/v1/signed": "ses_" + "0" * 32, "/v1/receipts": "rcp_" + "0" * 32,
         "/v1/approvals": "apr_" + "0" * 32, "{sha256}": "0" * 64, "{context}": "never", "{process}": "prc_0",
         "{checkpoint}": "ckp_" + "0" * 32, "{path}": "f.txt", "{port}": "8080"}
WHOLE = os.environ.get("GLOVEBOX_MATRIX") == "whole"
NO_JSON = [b"", b"{", b"[]", b"null", b"7", b'"x"', b"\xff\xfe", b'{"":1,"":2}', b"[" * 2000]
WRONG = [None, True, -1, 0.5, 2 ** 64, "", "x\0y", [], [[None]], {}, {"": {}}, "x" * 5000]
NO_ID = ["", "x", "..", "%2e%2e", "%2F", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%00", "%ff", "%zz", "*", "-1", "0" * 300,
         "18446744073709551616", "ses_" + "g" * 32, "SES_" + "0" * 32, "ses_" + "0" * 31, "run_" + "0" * 33, "%F0%9F%98%80"]


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("states"))
    state_of_its_own(glovebox)
    policies = glovebox.folder / "policies"
    policies.mkdir()
    policies.chmod(0o755)
    (policies / "asked.yaml").write_text("name: asked\nextends: minimal\napproval: {when: [always]}\n")
    with Serving(glovebox, "--queue", "500", "--key-queue", "500", slots=24,
                 env={"GLOVEBOX_POLICIES": f"{policies}:{TOP / 'policies'}"}) as service:
        service.description = Description(service.call("GET", "/openapi.json").json)
        service.own = service.key("--tenant", "a", "--scope", ",".join(EVERY))
        yield service


@pytest.fixture(autouse=True)
def slots_are_given_back(service):
    yield
    for one in service.call("GET", "/v1/sessions", key=service.own).json["sessions"]:
        service.call("DELETE", f"/v1/sessions/{one['id']}", key=service.own)


def session(service, key, **request):
    made = service.call("POST", "/v1/sessions", {"policy": "minimal"} | request, key=key)
    assert made.status == 201, made.body
    return made.json["id"]


def signed_urls(service, key, place):
    """By method, each for f.txt."""
    return {method: service.call("POST", f"{place}/files:sign", {"path": "f.txt", "method": method}, key=key).json["url"]
            for method in ("GET", "PUT")}


def session_things(service, key):
    """A session, and what is in it."""
    made = session(service, key)
    place = f"/v1/sessions/{made}"
    assert service.call("PUT", f"{place}/files/f.txt", b"x", key=key).status == 200
    assert service.call("POST", f"{place}/contexts/python/run", {"code": "1"}, key=key).status == 200
    process = service.call("POST", f"{place}/processes", {"command": ["sleep", "60"]}, key=key).json["id"]
    checkpoint = service.call("POST", f"{place}/checkpoints", {}, key=key).json["id"]
    return NEVER | {"/v1/sessions": made, "{context}": "python", "{process}": process, "{checkpoint}": checkpoint,
                    "signed": signed_urls(service, key, place)}


def run_things(service, key):
    """A run that has ended with all that it leaves, and one that waits for a person."""
    made = service.run("open('o', 'w').write('made by a')", key=key).json
    waits = service.run("1", policy="asked", key=key).json["approval"]
    return NEVER | {"/v1/runs": made["id"], "/v1/receipts": made["receipt"], "/v1/approvals": waits,
                    "{sha256}": made["artifacts"][0]["sha256"]}


def running(service, key):
    """A run that runs on until it is cancelled."""
    began = service.call("POST", "/v1/runs", {"code": "import time; time.sleep(60)", "policy": "minimal"}, key=key,
                         headers={"Prefer": "respond-async"})
    assert began.status == 202
    return NEVER | {"/v1/runs": began.json["id"]}


def answer_of(service, method, place, body, key):
    """What comes; the bytes only of what has an end."""
    response = service.open(method, place, body, key=key)
    if method == "HEAD" or (response.headers["Content-Type"] or "").startswith("application/json"):
        return Answer(response)
    response.body = b""
    response.close()
    return response


def bodies(service, method, path):
    """For this route; the right one comes last, since it may be the end of something."""
    right = MATRIX.get((method, path), (0, 0, b"x" if method in ("PUT", "POST", "PATCH") else None))[2]
    if method not in ("PUT", "POST", "PATCH"):
        return [right]
    described = service.description.request_schema(service.description.document["paths"][path][method.lower()])
    if not described:
        return [b"", right]
    base = right if isinstance(right, dict) else {}
    fields = sorted(described[1].get("properties", {}))
    if not WHOLE:
        return [b"", *(dict.fromkeys(fields, value) for value in (7, [[None]])), right]
    wrong = [dict.fromkeys(fields, value) for value in WRONG]
    each = [base | {field: value} for field in fields for value in WRONG]
    return [*NO_JSON, *wrong, *each, base | {"unknown": 1}, right]


def fault_of(service, method, path, have, key, body):
    """None, or what is wrong with the answer of this route."""
    signed = have.get("signed", {}).get(method) if path == SIGNED else None
    place = signed or place_of(path, {name: value for name, value in have.items() if name != "signed"})
    what = f"{method} {place} {str(body)[:200]}"
    try:
        answer = answer_of(service, method, place, body, key)
    except (OSError, http.client.HTTPException) as broken:
        return f"{what}: no answer, {broken!r}"
    if answer.status >= 500 and not (path == PORTS and answer.status == 502):  # 502: nothing listens there
        return f"{what}: {answer.status} {answer.body!r}"
    if answer.status >= 400 and method != "HEAD":
        told = json.loads(answer.body)["error"]
        if not {"code", "message", "fault", "request_id"} <= set(told) or told["fault"] == "glovebox":
            return f"{what}: {told}"
    if answer.status == 201 and path == S + "/branch":
        service.call("DELETE", f"/v1/sessions/{answer.json['id']}", key=key)  # there are not so many slots
    if method == "HEAD" or service.description.route(method, place) != path:  # what is no id may make another route of it
        return None
    return service.description.check(method, place, answer) or None


def routes(service, *parts):
    """Those that name one of these; HEAD wherever there is GET. What ends or moves something comes last."""
    rows = [row for row in served(service) - OPEN if any(part in row[1] for part in parts)]
    rows += [("HEAD", path) for method, path in rows if method == "GET"]
    assert rows
    return sorted(rows, key=lambda row: (row[0] == "DELETE", row[1].count("/") * -1 if row[0] == "DELETE" else 0, row))


def requests(service, parts):
    return [(*row, body) for row in routes(service, *parts) for body in bodies(service, *row)]


def faults(service, make, parts, key=None, keep=None):
    """Of all these routes and bodies for what make() gives, which is made anew when `keep` says that it has changed."""
    daemon, have, wrong = service.children()["gloveboxd"], make(), []
    for method, path, body in requests(service, parts):
        wrong.append(fault_of(service, method, path, have, key or service.own, body))
        if keep and not keep(have):
            have = make()
    assert [fault for fault in wrong if fault] == []
    assert service.children()["gloveboxd"] == daemon, "gloveboxd did not live through it"


def of_no_ids(service, name, have):
    """All that is wrong where something else stands in the place of an id."""
    daemon, part = service.children()["gloveboxd"], f"{name}/{{id}}" if name.startswith("/") else name
    wrong = [fault_of(service, method, path, have | {name: no_id}, service.own, bodies(service, method, path)[-1])
             for no_id in NO_ID for method, path in routes(service, part)]
    assert service.children()["gloveboxd"] == daemon
    return [fault for fault in wrong if fault]


def told(service, method, path, body, have, key):
    """An answer without the names of its caller, and without ids."""
    answer = answer_of(service, method, place_of(path, have), body, key)
    text = re.sub(r'"request_id":"\w+"', "", answer.body.decode())
    for name, value in have.items():
        text = text.replace(value, name)
    return answer.status, text, sorted(set(answer.headers) - {"Content-Length"})


def differences(service, key, have, parts):
    """Between what is another tenant's and what never was; a signature would stand in for the key."""
    have = {name: value for name, value in have.items() if name != "signed"}
    found = []
    for method, path, body in requests(service, parts):
        answers = [told(service, method, path, body, ids, key) for ids in (have, NEVER)]
        if answers[0] != answers[1] or answers[0][0] >= 500:
            found.append((method, path, body, answers))
    return found


OF_SESSIONS = ("/v1/sessions/{id}", SIGNED)
OF_RUNS = ("/v1/runs/{id}", "{sha256}", "/v1/receipts/{id}", "/v1/approvals/{id}")


def test_the_matrix_has_every_route_that_names_something(service):
    named = {row for row in set(MATRIX) | BY_SIGNATURE if "{" in row[1]}
    assert named <= set(routes(service, *OF_SESSIONS, *OF_RUNS))


class TestSessions:
    def make(self, service, state):
        have = session_things(service, service.own)
        place = f"/v1/sessions/{have['/v1/sessions']}"
        if state == "paused":
            assert service.call("POST", f"{place}/pause", key=service.own).status == 200
        elif state == "ended":
            assert service.call("DELETE", place, key=service.own).status == 200
        elif state == "expired":
            assert service.call("PATCH", place, {"ttl_seconds": 1}, key=service.own).status == 200
            end = time.monotonic() + 20
            while self.state_of(service, have) != "ended":
                assert time.monotonic() < end
                time.sleep(0.05)
        return have

    def state_of(self, service, have):
        return service.call("GET", f"/v1/sessions/{have['/v1/sessions']}", key=service.own).json["state"]

    @pytest.mark.parametrize("state", ["running", "paused", "ended"])
    def test_in_a_state(self, service, state):
        faults(service, lambda: self.make(service, state), OF_SESSIONS, keep=lambda have: self.state_of(service, have) == state)

    def test_while_it_starts(self, service):
        """Its sandbox cannot come: the spawner stands still. No sandbox with these limits is parked."""
        spawner = service.children()["glovebox-spawner"]
        daemon = service.children()["gloveboxd"]
        wanted = {"limits": {"disk_bytes": 3 << 20}, "metadata": {"is": "starting"}}
        told = []
        os.kill(spawner, signal.SIGSTOP)
        maker = threading.Thread(target=lambda: told.append(
            service.call("POST", "/v1/sessions", {"policy": "minimal"} | wanted, key=service.own)))
        try:
            maker.start()
            end = time.monotonic() + 15
            found = []
            while not found and time.monotonic() < end:
                found = service.call("GET", "/v1/sessions?metadata=is%3Dstarting", key=service.own).json["sessions"]
            assert found[0]["state"] == "starting"
            have = NEVER | {"/v1/sessions": found[0]["id"], "{context}": "python"}
            wrong = [fault_of(service, method, path, have, service.own, body)
                     for method, path, body in requests(service, OF_SESSIONS)]
        finally:
            os.kill(spawner, signal.SIGCONT)
            maker.join()
        assert [fault for fault in wrong if fault] == []
        assert told[0].status == 409, "it was deleted while it started"
        assert service.children()["gloveboxd"] == daemon

    def test_that_have_expired(self, service):
        have = self.make(service, "expired")
        faults(service, lambda: have, OF_SESSIONS)

    def test_without_owner(self, service):
        faults(service, lambda: NEVER, OF_SESSIONS)

    def test_of_another_tenant(self, service):
        have = session_things(service, service.own)
        other = service.key("--tenant", "b", "--scope", ",".join(EVERY))
        faults(service, lambda: have, OF_SESSIONS, key=other)
        assert differences(service, other, have, ["/v1/sessions/{id}"]) == []
        assert self.state_of(service, have) == "running"

    @pytest.mark.parametrize("name", ["/v1/sessions", "{context}", "{process}", "{checkpoint}", "{port}", "{path}"])
    def test_ids_that_are_none(self, service, name):
        assert of_no_ids(service, name, self.make(service, "running") | {"signed": {}}) == []

    @pytest.mark.parametrize("gone", [{"{context}": "gone"}, {"{process}": "gone"}, {"{checkpoint}": "gone"}])
    def test_ended_objects_of_a_running_session(self, service, gone):
        faults(service, lambda: self.make(service, "running") | gone, [next(iter(gone))],
               keep=lambda have: self.state_of(service, have) == "running")

    def test_processes_that_have_ended(self, service):
        have = self.make(service, "running")
        place = f"/v1/sessions/{have['/v1/sessions']}/processes/{have['{process}']}"
        assert service.call("POST", f"{place}/signal", {"signal": "KILL"}, key=service.own).status == 200
        while service.call("GET", place, key=service.own).json["state"] != "ended":
            time.sleep(0.02)
        faults(service, lambda: have, ["{process}"])

    def test_a_context_that_is_busy(self, service):
        have = self.make(service, "running")
        place = f"/v1/sessions/{have['/v1/sessions']}/contexts/python/run"
        assert service.call("POST", place, {"code": "import time; time.sleep(30)"}, key=service.own,
                            headers={"Prefer": "respond-async"}).status == 202
        wrong = [fault_of(service, method, path, have, service.own, body)
                 for method, path, body in requests(service, OF_SESSIONS) if path != S + "/contexts/{context}/run"]
        assert [fault for fault in wrong if fault] == []


class TestRuns:
    def test_that_have_ended(self, service):
        faults(service, lambda: run_things(service, service.own), OF_RUNS)

    def test_that_run(self, service):
        faults(service, lambda: running(service, service.own), OF_RUNS)

    def test_approvals_that_are_decided(self, service):
        have = run_things(service, service.own)
        decider = service.key("--tenant", "a", "--scope", ",".join(EVERY))
        assert service.call("POST", f"/v1/approvals/{have['/v1/approvals']}:decide", {"decision": "deny"},
                            key=decider).status == 200
        faults(service, lambda: have, OF_RUNS, key=decider)

    def test_that_were_cancelled(self, service):
        have = running(service, service.own)
        assert service.call("DELETE", f"/v1/runs/{have['/v1/runs']}", key=service.own).status == 200
        faults(service, lambda: have, OF_RUNS)

    def test_while_they_are_built(self, service):
        """As sessions above."""
        spawner, daemon = service.children()["glovebox-spawner"], service.children()["gloveboxd"]
        os.kill(spawner, signal.SIGSTOP)
        try:
            began = service.call("POST", "/v1/runs", {"code": "1", "policy": "minimal", "limits": {"disk_bytes": 3 << 20}},
                                 key=service.own, headers={"Prefer": "respond-async"})
            assert began.status == 202
            have = NEVER | {"/v1/runs": began.json["id"]}
            assert service.call("GET", f"/v1/runs/{began.json['id']}", key=service.own).json["status"] in ("queued", "building")
            wrong = [fault_of(service, method, path, have, service.own, body) for method, path, body in requests(service, OF_RUNS)]
        finally:
            os.kill(spawner, signal.SIGCONT)
        assert [fault for fault in wrong if fault] == []
        assert service.children()["gloveboxd"] == daemon

    def test_without_owner(self, service):
        faults(service, lambda: NEVER, OF_RUNS)

    def test_of_another_tenant(self, service):
        have = run_things(service, service.own)
        other = service.key("--tenant", "b", "--scope", ",".join(EVERY))
        faults(service, lambda: have, OF_RUNS, key=other)
        assert differences(service, other, have, OF_RUNS) == []

    @pytest.mark.parametrize("name", ["/v1/runs", "/v1/receipts", "/v1/approvals", "{sha256}"])
    def test_ids_that_are_none(self, service, name):
        assert of_no_ids(service, name, NEVER) == []


class TestOfAnEarlierDaemon:
    """Last in this file: they end the daemon."""

    @pytest.fixture(name="left", scope="class")
    def left_(self, service):
        """Killed, as it may be at any moment; what it had lives on in files only."""
        sessions = {"running": session_things(service, service.own), "paused": session_things(service, service.own),
                    "ended": session_things(service, service.own)}
        place = "/v1/sessions/{}".format
        assert service.call("POST", place(sessions["paused"]["/v1/sessions"]) + "/pause", key=service.own).status == 200
        assert service.call("DELETE", place(sessions["ended"]["/v1/sessions"]), key=service.own).status == 200
        runs = {"ended": run_things(service, service.own), "running": running(service, service.own)}
        daemon = service.children()["gloveboxd"]
        os.kill(daemon, signal.SIGKILL)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                if service.children().get("gloveboxd", daemon) != daemon and service.call("GET", "/healthz").status == 200:
                    return {"sessions": sessions, "runs": runs}
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError(service.log.read_text())

    @pytest.mark.parametrize("state", ["running", "paused", "ended"])
    def test_sessions(self, service, left, state):
        faults(service, lambda: left["sessions"][state], OF_SESSIONS)

    @pytest.mark.parametrize("state", ["ended", "running"])
    def test_runs(self, service, left, state):
        faults(service, lambda: left["runs"][state], OF_RUNS)

    def test_they_are_reported_as_ended(self, service, left):
        for have in left["sessions"].values():
            place = f"/v1/sessions/{have['/v1/sessions']}"
            assert service.call("GET", place, key=service.own).json["state"] == "ended"
            for method, path in (("GET", "/files/f.txt"), ("POST", "/files:list"), ("GET", "/ports/8080/")):
                refused = service.call(method, place + path, {"path": "/workspace"} if method == "POST" else None,
                                       key=service.own)
                assert refused.status == 409 and "has ended" in refused.json["error"]["message"], (path, refused.body)

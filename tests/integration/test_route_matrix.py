"""Every route that is served, for a key of the same tenant, of another one, of nobody, and of the wrong scope. The
routes come from the OpenAPI document, which is printed from the tables that serve: a new one that has no row here
fails."""

import os

import pytest
from conftest import TOP, Glovebox
from serving import Serving, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")

EVERY = ("run", "sessions", "approve", "audit", "admin")
RUN, SESSIONS, RESULTS, ASKER = {"run"}, {"sessions"}, {"run", "sessions"}, {"run", "sessions", "approve"}
ANY = set(EVERY)
ALL = None  # the same for every valid key
CELL, FILE = {"code": "1"}, {"path": "/workspace/f.txt"}
S = "/v1/sessions/{id}"

# (method, path): scopes, what another tenant's key is answered (404: it does not exist for it), body.
MATRIX = {
    ("POST", "/v1/runs"): (RUN, ALL, {"code": "1", "policy": "minimal"}),
    ("GET", "/v1/runs"): (RESULTS, ALL, None),
    ("GET", "/v1/runs/{id}"): (RESULTS, 404, None),
    ("DELETE", "/v1/runs/{id}"): (RESULTS, 404, None),
    ("GET", "/v1/runs/{id}/events"): (RESULTS, 404, None),
    ("GET", "/v1/runs/{id}/artifacts.zip"): (RESULTS, 404, None),
    ("GET", "/v1/artifacts/{sha256}"): (RESULTS, 404, None),
    ("POST", "/v1/sessions"): (SESSIONS, ALL, {"policy": "minimal"}),
    ("GET", "/v1/sessions"): (SESSIONS, ALL, None),
    ("GET", S): (SESSIONS, 404, None),
    ("PATCH", S): (SESSIONS, 404, {"metadata": {}}),
    ("POST", S + "/pause"): (SESSIONS, 404, None),
    ("POST", S + "/resume"): (SESSIONS, 404, None),
    ("POST", S + "/branch"): (SESSIONS, 404, {}),
    ("POST", S + "/checkpoints"): (SESSIONS, 404, {}),
    ("GET", S + "/checkpoints"): (SESSIONS, 404, None),
    ("POST", S + "/checkpoints/{checkpoint}/rollback"): (SESSIONS, 404, None),
    ("DELETE", S + "/checkpoints/{checkpoint}"): (SESSIONS, 404, None),
    ("DELETE", S): (SESSIONS, 404, None),
    ("POST", S + "/contexts"): (SESSIONS, 404, {}),
    ("GET", S + "/contexts"): (SESSIONS, 404, None),
    ("DELETE", S + "/contexts/{context}"): (SESSIONS, 404, None),
    ("POST", S + "/contexts/{context}/run"): (SESSIONS, 404, CELL),
    ("POST", S + "/contexts/{context}/interrupt"): (SESSIONS, 404, None),
    ("POST", S + "/contexts/{context}/restart"): (SESSIONS, 404, None),
    ("POST", S + "/files:stat"): (SESSIONS, 404, FILE),
    ("POST", S + "/files:list"): (SESSIONS, 404, {"path": "/workspace"}),
    ("POST", S + "/files:mkdir"): (SESSIONS, 404, {"path": "/workspace/d"}),
    ("POST", S + "/files:move"): (SESSIONS, 404, {"from": "/workspace/f.txt", "to": "/workspace/g.txt"}),
    ("POST", S + "/files:sign"): (SESSIONS, 404, FILE),
    ("GET", S + "/files:watch"): (SESSIONS, 404, None),
    ("GET", S + "/files:tar"): (SESSIONS, 404, None),
    ("PUT", S + "/files:tar"): (SESSIONS, 404, b""),
    ("GET", S + "/files/{path}"): (SESSIONS, 404, None),
    ("PUT", S + "/files/{path}"): (SESSIONS, 404, b"x"),
    ("DELETE", S + "/files/{path}"): (SESSIONS, 404, None),
    ("POST", S + "/processes"): (SESSIONS, 404, {"command": ["true"]}),
    ("GET", S + "/processes"): (SESSIONS, 404, None),
    ("GET", S + "/processes/{process}"): (SESSIONS, 404, None),
    ("GET", S + "/processes/{process}/events"): (SESSIONS, 404, None),
    ("POST", S + "/processes/{process}/stdin"): (SESSIONS, 404, {"data": "x"}),
    ("POST", S + "/processes/{process}/signal"): (SESSIONS, 404, {"signal": "TERM"}),
    ("POST", S + "/processes/{process}/resize"): (SESSIONS, 404, {"rows": 1, "columns": 1}),
    ("GET", S + "/ports:token"): (SESSIONS, 404, None),
    ("GET", "/v1/policies"): (ANY, ALL, None),
    ("GET", "/v1/templates"): (ANY, ALL, None),
    ("GET", "/v1/limits"): (ANY, ALL, None),
    ("GET", "/metrics"): ({"audit"}, ALL, None),
    ("GET", "/v1/receipts"): ({"audit"}, ALL, None),
    ("GET", "/v1/receipts/{id}"): (ANY, 404, None),
    ("GET", "/v1/receipts/{id}/opening"): (ANY, 404, None),
    ("GET", "/v1/log/key"): (ANY, ALL, None),
    ("GET", "/v1/log/checkpoint"): (ANY, ALL, None),
    ("GET", "/v1/log/proof/inclusion"): (ANY, ALL, None),
    ("GET", "/v1/log/proof/consistency"): (ANY, ALL, None),
    ("GET", "/v1/approvals"): (ASKER, ALL, None),
    ("GET", "/v1/approvals/{id}"): (ASKER, 404, None),
    ("POST", "/v1/approvals/{id}"): ({"approve"}, 404, {"decision": "deny"}),
    ("POST", "/v1/approvals/{id}:decide"): ({"approve"}, 404, {"decision": "deny"}),
    ("GET", "/v1/status"): ({"admin"}, ALL, None),
    ("GET", "/v1/network/rules"): ({"audit"}, ALL, None),
    ("GET", "/v1/network/connections"): (RESULTS, ALL, None),
}

# A signature, a token or a scope checked by the handler stands in for the key: ports, signed URLs.
BY_SIGNATURE = {(method, path) for path, methods in {
    "/v1/signed/{id}/{path}": ("GET", "PUT"),
    S + "/ports/{port}/{path}": ("GET", "PUT", "POST", "DELETE", "PATCH"),
}.items() for method in methods}
OPEN = {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/openapi.json")}


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("matrix"))
    state_of_its_own(glovebox)
    policies = glovebox.folder / "policies"
    policies.mkdir()
    policies.chmod(0o755)
    (policies / "asked.yaml").write_text("name: asked\nextends: minimal\napproval: {when: [always]}\n")
    with Serving(glovebox, "--queue", "500", "--key-queue", "500", slots=24,
                 env={"GLOVEBOX_POLICIES": f"{policies}:{TOP / 'policies'}"}) as service:
        yield service


def things(service, key):
    """What tenant a has, as parts of paths."""
    made = service.run("open('o', 'w').write('made by a')", key=key).json
    session = service.call("POST", "/v1/sessions", {"policy": "minimal"}, key=key).json["id"]
    place = f"/v1/sessions/{session}"
    assert service.call("PUT", f"{place}/files/f.txt", b"x", key=key).status in (200, 201, 204)
    process = service.call("POST", f"{place}/processes", {"command": ["sleep", "60"]}, key=key).json["id"]
    checkpoint = service.call("POST", f"{place}/checkpoints", {}, key=key).json["id"]
    waits = service.run("1", policy="asked", key=key).json["approval"]
    return {"/v1/runs": made["id"], "/v1/sessions": session, "/v1/receipts": made["receipt"],
            "/v1/approvals": waits, "{sha256}": made["artifacts"][0]["sha256"], "{context}": "python",
            "{process}": process, "{checkpoint}": checkpoint, "{path}": "f.txt"}


def place_of(path, have):
    for name, value in have.items():
        path = path.replace(f"{name}/{{id}}", f"{name}/{value}") if name.startswith("/") else path.replace(name, value)
    return path + {"/v1/log/proof/inclusion": "?index=0", "/v1/log/proof/consistency": "?from=0",
                   S + "/files:watch": "?path=/workspace"}.get(path, "")


def status_of(service, method, place, body, **who):
    response = service.open(method, place, body, **who)
    response.close()
    return response.status


def served(service):
    document = service.call("GET", "/openapi.json").json["paths"]
    return {(method.upper(), path) for path, methods in document.items() for method in methods
            if method in ("get", "put", "post", "delete", "patch")}


def test_every_route_has_a_row(service):
    known = set(MATRIX) | BY_SIGNATURE | OPEN
    assert served(service) - known == set(), "say here who may use it"
    assert known - served(service) == set(), "it is not served any more"


def test_requests_without_a_key_or_with_a_wrong_one_are_refused(service):
    have = things(service, service.key("--tenant", "a", "--scope", ",".join(EVERY)))
    wrong = []
    for method, path in sorted(served(service) - OPEN):
        for who in ({"tcp": True}, {"key": "glb_0000000000000000_" + "A" * 43}):
            body = MATRIX.get((method, path), (0, 0, None))[2]
            status = status_of(service, method, place_of(path, have).replace("{port}", "8080"), body, **who)
            if status != 401 and not ((method, path) in BY_SIGNATURE and status in (401, 403, 404)):
                wrong.append((method, path, status, who))
    assert not wrong


def test_a_key_without_the_scope_is_refused(service):
    have = things(service, service.key("--tenant", "a", "--scope", ",".join(EVERY)))
    keys = {scope: service.key("--tenant", "a", "--scope", scope) for scope in EVERY}
    wrong = []
    for (method, path), (scopes, _, body) in sorted(MATRIX.items()):
        for scope in sorted(set(EVERY) - scopes):
            status = status_of(service, method, place_of(path, have), body, key=keys[scope])
            if status != 403:
                wrong.append((method, path, scope, status))
    assert not wrong


def test_what_is_one_tenants_does_not_exist_for_another(service):
    have = things(service, service.key("--tenant", "a", "--scope", ",".join(EVERY)))
    other = service.key("--tenant", f"b{os.urandom(3).hex()}", "--scope", ",".join(EVERY))
    wrong = []
    for (method, path), (_, for_other, body) in sorted(MATRIX.items()):
        status = status_of(service, method, place_of(path, have), body, key=other)
        if for_other and status != for_other or not for_other and status not in (200, 201):
            wrong.append((method, path, status))
    assert not wrong
    for path, rows in (("/v1/runs", "runs"), ("/v1/sessions?state=all", "sessions"), ("/v1/approvals", "approvals")):
        for row in service.call("GET", path, key=other).json[rows]:
            assert row["id"] not in have.values(), path


def test_ones_own_is_there_for_every_key_of_the_tenant(service):
    own = [service.key("--tenant", "a", "--scope", ",".join(EVERY)) for _ in range(2)]
    have = things(service, own[0])
    last = [("DELETE", S + "/files/{path}"), ("POST", S + "/processes/{process}/signal"),
            ("POST", S + "/checkpoints/{checkpoint}/rollback"), ("DELETE", S + "/checkpoints/{checkpoint}"),
            ("DELETE", S + "/contexts/{context}"), ("DELETE", S)]
    skipped = {("POST", S + "/files:move"), ("PUT", S + "/files:tar"), ("POST", S + "/processes/{process}/stdin"),
               ("POST", S + "/processes/{process}/resize"), ("POST", "/v1/approvals/{id}:decide")}
    wrong = []
    for method, path in [row for row in MATRIX if row not in last and row not in skipped] + last:
        status = status_of(service, method, place_of(path, have), MATRIX[method, path][2], key=own[1])
        if status not in (200, 201, 202, 204):
            wrong.append((method, path, status))
    assert not wrong


def test_every_route_names_its_methods(service):
    """OPTIONS, and a method that is not served, are answered with the methods of the document."""
    methods = {}
    for method, path in served(service):
        methods.setdefault(path, {"OPTIONS"}).update({method} | ({"HEAD"} if method == "GET" else set()))
    del methods[S + "/ports/{port}/{path}"]  # the program behind the port answers
    wrong = []
    for path, allowed in sorted(methods.items()):
        place = path.replace("{", "").replace("}", "")
        other = min({"DELETE", "PATCH", "POST", "PUT"} - allowed)
        for method, status in (("OPTIONS", 204), (other, 405), ("TRACE", 405)):
            answer = service.call(method, place)
            said = (answer.headers["Allow"] or "").split(", ")
            if answer.status != status or set(said) != allowed or len(said) != len(allowed):
                wrong.append((method, path, answer.status, said))
    assert not wrong

"""Audit events of administration: keys, policies, configuration, sessions. (Approvals: test_approvals.py.)"""

import base64
import json
import os
import secrets

import jsonschema
import pytest
from conftest import TOP
from serving import Serving, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")

SCHEMA = TOP / "docs" / "reference" / "event.schema.json"


def events(service):
    said = [json.loads(line) for line in service.glovebox("log", "search", "--json", "").stdout.splitlines()]
    return [one for one in said if "event" in one]


def test_administrative_actions_are_recorded(glovebox):
    state = state_of_its_own(glovebox)
    policies = glovebox.folder / "policies"
    policies.mkdir()
    policies.chmod(0o755)
    own = policies / "own.yaml"
    own.write_text("name: own\nextends: minimal\n")
    planted = f"planted-{secrets.token_hex(8)}"
    with Serving(glovebox, env={"GLOVEBOX_POLICIES": f"{policies}:{TOP / 'policies'}"}) as service:
        key = service.key("--tenant", "a", "--scope", "run,sessions", "--expires", "1h")
        rotated = json.loads(service.glovebox("key", "rotate", key["id"], "--grace", "1h", "--json").stdout)["key"]
        made = service.call("POST", "/v1/sessions", {"policy": "own", "env": {"TOKEN": planted}}, key=rotated).json
        cell = service.call("POST", f"/v1/sessions/{made['id']}/contexts/python/run", {"code": f"x = '{planted}'"},
                            key=rotated)
        assert cell.json["status"] == "ok"
        service.call("DELETE", f"/v1/sessions/{made['id']}", key=rotated)
        own.write_text("name: own\nextends: minimal\nlimits: {wall: 3s}\n")
        service.reload()
        service.glovebox("key", "revoke", key["id"])
        said = events(service)
        verified = service.glovebox("log", "verify", "--json", "--signatures")
    schema = json.loads(SCHEMA.read_text())
    for event in said:
        jsonschema.validate(event, schema)
    assert [event["event"] for event in said] == [
        "policies.loaded", "key.created", "key.rotated", "session.opened", "session.ended", "config.reloaded",
        "policies.loaded", "key.revoked"]
    first, created, turned, opened, ended, reloaded, second, revoked = (event["facts"] for event in said)
    assert created["key"] == turned["key"] == revoked["key"] == opened["key"] == key["id"]
    assert created["scopes"] == "run,sessions" and created["tenant"] == "a" and created["uid"] == os.getuid()
    assert turned["old_until_s"] > 0 and opened["session"] == made["id"] and ended["end"] == "deleted"
    assert reloaded == {"policies": "own changed", "settings": ""}
    assert first["count"] == second["count"] and first["policies"] != second["policies"]
    assert made["policy"]["digest"] in first["policies"] and opened["policy"] == made["policy"]["digest"]
    assert json.loads(verified.stdout)["verified"]
    kept = json.dumps(said).encode()
    for path in (state / "daemon").rglob("*"):
        kept += path.read_bytes() if path.is_file() else b""
    for secret in (planted, *(text.split("_", 2)[2] for text in (key["key"], rotated))):  # a secret may have _ itself
        assert len(secret) >= 8 and secret.encode() not in kept


def test_refused_requests_are_in_the_log(glovebox):
    """Without a key, with a wrong one, with one that lacks the scope; not what the owner is refused; and no more lines than
    a second has."""
    state_of_its_own(glovebox)
    with Serving(glovebox, slots=2) as service:
        key = service.key("--tenant", "a", "--scope", "run")
        assert service.call("GET", "/v1/runs", tcp=True).status == 401
        assert service.call("GET", "/v1/runs/run_0?x=secret", key="glb_wrong").status == 401
        assert service.call("GET", "/v1/receipts", key=key).status == 403
        assert service.call("POST", "/v1/approvals/apr_1:decide", {"decision": "approve"}).status == 404
        for _ in range(60):
            service.call("GET", "/v1/sessions", key="glb_wrong")
        metrics = service.call("GET", "/metrics").body.decode()
        lines = [line for line in service.log.read_text().splitlines() if " access.refused " in line]
    assert " status=401 method=GET path=/v1/runs by=tcp key=none " in lines[0]
    assert "path=/v1/runs/{id} " in lines[1] and "secret" not in "".join(lines)
    assert f" status=403 method=GET path=/v1/receipts by=tcp key={key['id']} tenant=a " in lines[2]
    assert 20 <= len(lines) < 60
    assert "glovebox_http_unauthorized_total 62" in metrics and "glovebox_http_forbidden_total 1" in metrics


def pages(service, key=None, limit=2, cursor=0):
    rows, asked = [], 0
    while True:
        answer = service.call("GET", f"/v1/receipts?limit={limit}&cursor={cursor}", key=key)
        assert answer.status == 200, answer.json
        rows += answer.json["receipts"]
        asked += 1
        if not answer.json["next_cursor"]:
            return rows, asked
        assert int(answer.json["next_cursor"]) > int(cursor)
        cursor = answer.json["next_cursor"]


def test_receipts_are_listed_by_tenant(glovebox):
    """An auditor sees receipts and events of its tenant, in the order of the log; the owner sees all; a run's key none."""
    state_of_its_own(glovebox)
    with Serving(glovebox, slots=4) as service:
        keys = {name: service.key("--tenant", name, "--scope", "run") for name in "ab"}
        auditor = service.key("--tenant", "a", "--scope", "audit")
        receipts = {name: [service.run(f"print({n})", key=keys[name]).json["receipt"] for n in range(3)] for name in "ab"}
        whole, asked = pages(service)
        assert [row["index"] for row in whole] == list(range(len(whole))) and asked == (len(whole) + 1) // 2
        whole_pages = service.call("GET", "/v1/receipts?limit=100")
        assert len(whole_pages.body) < 200_000, "one page is a small part of a turn of the loop"
        own, _ = pages(service, key=auditor)
        payloads = [json.loads(base64.b64decode(row["envelope"]["payload"])) for row in own]
        assert [one["predicate"]["id"] for one in payloads if "predicate" in one] == receipts["a"]
        assert [one["facts"]["key"] for one in payloads if "event" in one] == [keys["a"]["id"], auditor["id"]]
        assert not any(receipt in json.dumps(payloads) for receipt in receipts["b"])
        last = own[-1]["index"] + 1
        assert pages(service, key=auditor, cursor=last)[0] == []
        fresh = service.run("print(9)", key=keys["a"]).json["receipt"]
        followed, _ = pages(service, key=auditor, cursor=last)
        assert [json.loads(base64.b64decode(row["envelope"]["payload"]))["predicate"]["id"] for row in followed] == [fresh]
        assert service.call("GET", f"/v1/receipts/{fresh}", key=auditor).json == followed[0]["envelope"]
        assert service.call("GET", "/v1/receipts", key=keys["a"]).status == 403
        for other in (receipts["b"][0], f"{fresh[:-1]}{'01'[fresh[-1] == '0']}", "rcp_" + "f" * 32):  # beyond the end too
            answer = service.call("GET", f"/v1/receipts/{other}", key=auditor)
            assert (answer.status, answer.json["error"]["message"]) == (
                404, f"no receipt has the id {other}; GET /v1/receipts lists those that are kept"), answer.json
        assert pages(service, cursor=10**15)[0] == []
        for wrong in ("limit=0", "limit=101", "cursor=-1", "cursor=x", "cursor=99999999999999999999"):
            assert service.call("GET", f"/v1/receipts?{wrong}").status == 400, wrong


def test_copies_of_sessions_are_reported(glovebox):
    """Who has made a checkpoint, gone back to it and begun a branch: also with another key than the session's."""
    state_of_its_own(glovebox)
    with Serving(glovebox, slots=4) as service:
        keys = [service.key("--tenant", "a", "--scope", "run,sessions") for _ in range(2)]
        made = service.call("POST", "/v1/sessions", {"policy": "minimal"}, key=keys[0]).json["id"]
        place = f"/v1/sessions/{made}"
        checkpoint = service.call("POST", f"{place}/checkpoints", {"name": "x"}, key=keys[0])
        assert checkpoint.status == 201, checkpoint.json
        refused = service.call("POST", f"{place}/checkpoints/x/rollback", {"name": "x"}, key=keys[1])
        assert refused.status == 400 and "unknown key" in refused.json["error"]["message"], refused.json
        assert service.call("POST", f"{place}/checkpoints/x/rollback", {}, key=keys[1]).status == 200
        branch = service.call("POST", f"{place}/branch", {"checkpoint": "x"}, key=keys[1])
        assert branch.status == 201, branch.json
        for one in (branch.json["id"], made):
            service.call("DELETE", f"/v1/sessions/{one}", key=keys[0])
        said = events(service)
    schema = json.loads(SCHEMA.read_text())
    for event in said:
        jsonschema.validate(event, schema)
    said = {event["event"]: event["facts"] for event in said}
    facts = {"context": "python", "checkpoint": checkpoint.json["id"], "tenant": "a"}
    checkpointed = facts | {"bytes": checkpoint.json["bytes"], "session": made}
    assert said["session.checkpointed"] == checkpointed | {"key": keys[0]["id"]}
    assert said["session.rolled_back"] == checkpointed | {"key": keys[1]["id"]}
    assert said["session.branched"] == facts | {"key": keys[1]["id"], "parent": made, "session": branch.json["id"]}


def test_a_key_that_cannot_be_printed_is_not_created(glovebox):
    state = state_of_its_own(glovebox)
    assert glovebox("key", "create").returncode == 0
    (state / "daemon" / "log" / "checkpoint").write_text("no checkpoint\n")
    done = glovebox("key", "create")
    assert done.returncode == 125 and b"the key was not made" in done.stderr and done.stdout == b""
    states = [row["state"] for row in json.loads(glovebox("key", "list", "--json").stdout)]
    assert sorted(states) == ["good", "revoked"]


def test_every_kind_of_event_is_in_the_schema():
    known = set(json.loads(SCHEMA.read_text())["properties"]["event"]["enum"])
    written = set()
    for source in (TOP / "src").rglob("*.c"):
        for word in source.read_text().split('"'):
            if word.startswith(("approval.", "key.", "libs.")) and word.endswith("ed") and word.count(".") == 1:
                written.add(word)
    assert len(written) >= 12 and written <= known


def test_names_in_receipts_cannot_change_what_a_terminal_shows(glovebox):
    """Marks that reorder text or show nothing are written out, in names of artifacts as in facts of events; --json and the
    receipt itself have them as they are."""
    state_of_its_own(glovebox)
    with Serving(glovebox, tcp=False, slots=2) as service:
        ran = service.run("open('bill\u202efdp.\u200b\U000e0041exe', 'w').write('x')").json
        made = service.call("POST", "/v1/sessions", {"policy": "minimal"}).json["id"]
        service.call("POST", f"/v1/sessions/{made}/checkpoints", {"name": "x"})
    shown = service.glovebox("receipt", "show", ran["receipt"]).stdout.decode()
    assert "bill<U+202E>fdp.<U+200B><U+E0041>exe" in shown and not set("\u202e\u200b\U000e0041") & set(shown)
    assert "bill\u202efdp.\u200b\U000e0041exe" in service.glovebox("receipt", "show", "--json", ran["receipt"]).stdout.decode()
    assert "session.checkpointed" in service.glovebox("log", "search", made).stdout.decode()

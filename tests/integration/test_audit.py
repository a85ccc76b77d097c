"""Audit events of administration: keys, policies, configuration, sessions. (Approvals: test_approvals.py.)"""

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


def test_who_governs_is_told(glovebox):
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


def test_copies_of_sessions_are_told(glovebox):
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


def test_a_key_that_cannot_be_told_is_not_made(glovebox):
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

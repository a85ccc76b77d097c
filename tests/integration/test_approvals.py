"""Approvals: what waits for a person, who may decide on it, and that a decision is good for nothing else."""

import hashlib
import json
import os
import re
import signal
import subprocess
import threading
import time

import jsonschema
import pytest
from conftest import TOP, Glovebox
from serving import Serving, begin_on_terminal, state_of_its_own, with_policies

pytestmark = pytest.mark.usefixtures("python_template")

POLICIES = {
    "asked": "approval: {when: [always], expires: 1h}",
    "shortly": "approval: {when: [always], expires: 1s}",
    "other": "approval: {when: [always], by: out_of_band, scopes: [once]}",
    "timed": "approval: {when: [always], scopes: [once, code, session, time], expires: 1h}",
    "looked": "precheck: {subprocess: ask, modules: {deny: [ctypes], warn: [socket]}}\napproval: {when: [precheck_warning]}",
    "beyond": "approval: {when: [over_limits]}\nlimits: {wall: 5s}\nmaximum: {wall: 60s}",
}


@pytest.fixture(name="server", scope="module")
def server_(tmp_path_factory):
    """One daemon for all tests here; each of them is a tenant of its own."""
    glovebox = Glovebox(tmp_path_factory.mktemp("approvals"))
    state_of_its_own(glovebox)
    with Serving(glovebox, env=with_policies(glovebox, POLICIES)) as server:
        yield server


@pytest.fixture(name="service")
def service_(server):
    server.tenant = f"t{os.urandom(4).hex()}"
    server.asker = server.key("--tenant", server.tenant, "--scope", "run,sessions")
    server.decider = server.key("--tenant", server.tenant, "--scope", "approve")
    return server


def ask(service, code="print(1)", policy="asked", key=None, **request):
    """Gives the id of the approval that it waits for."""
    answer = service.run(code, policy=policy, key=key or service.asker, **request)
    assert answer.status == 202 and answer.json["status"] == "pending_approval", answer.body
    assert answer.json["stdout"] == "" and answer.json["error"]["name"] == "ApprovalNeeded"
    return answer.json["approval"]


def decide(service, approval, decision="approve", key=None, **more):
    return service.call("POST", f"/v1/approvals/{approval}:decide", {"decision": decision} | more,
                        key=key or service.decider)


def state(service, approval):
    return service.call("GET", f"/v1/approvals/{approval}", key=service.decider).json["state"]


def records(service):
    """The payloads of the log."""
    done = service.glovebox("log", "search", "--json", "")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def events(service):
    return [record for record in records(service) if "event" in record]


def test_it_runs_once_when_it_was_approved(service):
    approval = ask(service)
    assert ask(service) == approval, "the same request is not asked about twice"
    card = service.call("GET", f"/v1/approvals/{approval}", key=service.decider).json["card"]
    assert card["code"] == "print(1)" and card["reasons"] == ["always"] and card["network"] == []
    assert decide(service, approval).json["state"] == "approved"
    ran = service.run("print(1)", policy="asked", key=service.asker).json
    assert ran["status"] == "ok" and ran["stdout"] == "1\n" and ran["approval"] == approval
    receipt = service.call("GET", f"/v1/receipts/{ran['receipt']}", key=service.asker)
    assert receipt.status == 200
    said = [r["predicate"] for r in records(service) if "predicate" in r]
    said = [one for one in said if one["caller"]["tenant"] == service.tenant]
    assert [(one["outcome"]["status"], one["approval"]) for one in said] == [
        ("pending_approval", approval), ("pending_approval", approval), ("ok", approval)]
    # It is spent: named or not, nothing runs by it again.
    assert state(service, approval) == "used"
    named = service.run("print(1)", policy="asked", key=service.asker, approval=approval)
    assert named.status == 409 and "was used already" in named.json["error"]["message"]
    assert ask(service) != approval


def test_an_approval_covers_no_other_request(service):
    approval = ask(service, env={"A": "1"})
    assert decide(service, approval).status == 200
    for changed in ({"code": "print(2)"}, {"env": {"A": "2"}}, {"policy": "timed"}, {"limits": {"wall_ms": 4000}},
                    {"files": [{"path": "json.py", "content": "evil"}]}, {"args": ["x"]}, {"stdin": "x"},
                    {"mode": "cell"}):
        request = {"code": "print(1)", "language": "python", "env": {"A": "1"}, "policy": "asked"} | changed
        named = service.call("POST", "/v1/runs", request | {"approval": approval}, key=service.asker)
        assert named.status == 409 and "is for another request" in named.json["error"]["message"], changed
        asked = service.call("POST", "/v1/runs", request, key=service.asker)
        assert asked.status == 202 and asked.json["approval"] != approval, changed
    other = service.key("--tenant", service.tenant)
    assert service.run("print(1)", policy="asked", env={"A": "1"}, key=other, approval=approval).status == 403
    assert service.run("print(1)", policy="asked", env={"A": "1"}, key=other).status == 202
    stranger = service.key("--tenant", "b")
    assert service.run("print(1)", policy="asked", env={"A": "1"}, key=stranger, approval=approval).status == 404
    again = {"env": {"A": "1"}, "policy": "asked", "code": "print(1)", "approval": approval, "language": "python"}
    assert service.call("POST", "/v1/runs", again, key=service.asker).json["stdout"] == "1\n", "in any order of keys"


def test_requesters_do_not_decide_on_their_own_requests(service):
    both = service.key("--tenant", service.tenant, "--scope", "run,approve")
    approval = ask(service, key=both)
    refused = decide(service, approval, key=both)
    assert refused.status == 403 and "has requested this itself" in refused.json["error"]["message"]
    assert decide(service, approval, key=service.asker).status == 403, "it lacks the scope"
    stranger = service.key("--tenant", "b", "--scope", "run,approve")
    assert decide(service, approval, key=stranger).status == 404
    assert service.call("GET", f"/v1/approvals/{approval}", key=stranger).status == 404
    assert service.call("GET", f"/v1/approvals/{approval}", key=service.asker).status == 404, "another key's"
    assert service.call("GET", "/v1/approvals", key=stranger).json["approvals"] == []
    assert state(service, approval) == "pending"
    rotated = json.loads(service.glovebox("key", "rotate", both["id"], "--json").stdout)["key"]
    assert decide(service, approval, key=rotated).status == 403, "a new secret is the same asker"
    mine = service.run("print(1)", policy="other").json["approval"]
    refused = service.call("POST", f"/v1/approvals/{mine}", {"decision": "approve"})
    assert refused.status == 403 and "out_of_band" in refused.json["error"]["message"]
    operator = service.key("--scope", "approve", "--tenant", "ops")
    assert decide(service, mine, key=operator).status == 404, "another tenant's"


def test_requests_of_the_owner_need_approve_and_admin(service):
    def listed(key):
        return {row["id"] for query in ("state=pending", "state=all")
                for row in service.call("GET", f"/v1/approvals?limit=1000&{query}", key=key).json["approvals"]}

    mark = f"print('{os.urandom(4).hex()}')"
    tenants = ask(service, mark, policy="other")
    run = service.glovebox.start("run", "--daemon", service.socket, "--policy", "other", "-c", mark, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    line = run.stderr.readline()
    mine = line.split("glovebox approve ")[1].split()[0]
    assert "glovebox key create --name N --scope approve,admin" in line
    for scope in ("approve", "run,sessions,audit,admin", "run,sessions,approve,audit"):
        key = service.key("--tenant", service.tenant, "--scope", scope)
        assert service.call("GET", f"/v1/approvals/{mine}", key=key).status in (403, 404), scope
        assert decide(service, mine, key=key).status in (403, 404) and mine not in listed(service.decider), scope
    operator = service.key("--tenant", f"ops-{service.tenant}", "--scope", "approve,admin")
    assert mine in listed(operator) and tenants not in listed(operator), "no other tenant's"
    assert decide(service, tenants, key=operator).status == 404
    shown = service.call("GET", f"/v1/approvals/{mine}", key=operator).json
    assert shown["asker"] == "owner" and shown["card"]["code"] == mark
    done = service.glovebox("approve", "--daemon", service.socket, mine, env={"GLOVEBOX_API_KEY": operator["key"]})
    assert done.returncode == 0, done.stderr
    out, said = run.communicate(timeout=30)
    assert run.returncode == 0 and out == mark[7:-2] + "\n", said
    own = service.key("--tenant", service.tenant, "--scope", "run,approve,admin")
    asked = ask(service, mark, key=own)
    assert decide(service, asked, key=own).status == 403, "never one's own"


def test_a_decision_cannot_be_widened(service):
    approval = ask(service, policy="other")
    for scope in ("code", "session", "time"):
        refused = decide(service, approval, scope=scope)
        assert refused.status == 403 and f"no approval of scope {scope}" in refused.json["error"]["message"]
    assert decide(service, approval, scope="everything").status == 400
    assert decide(service, ask(service), scope="session").status in (400, 403), "it is in none"
    assert decide(service, approval, until_seconds=99999999).status == 400
    assert decide(service, approval).status == 200
    assert decide(service, approval, scope="once", until_seconds=60).status == 409, "decided for good"
    assert decide(service, approval, "deny").status == 409


def test_a_denial_has_a_reason(service):
    approval = ask(service)
    assert decide(service, approval, "deny", reason="not on a Friday").json["state"] == "denied"
    for named in ({}, {"approval": approval}):
        ended = service.run("print(1)", policy="asked", key=service.asker, **named)
        assert ended.status == 200 and ended.json["status"] == "denied" and ended.json["fault"] == "policy"
        assert "not on a Friday" in ended.json["error"]["value"] and ended.json["stdout"] == ""
    assert service.run("print(2)", policy="asked", key=service.asker).status == 202, "only this one was denied"


def test_an_expired_approval_denies(service):
    approval = ask(service, policy="shortly")
    waiting = service.call("GET", f"/v1/approvals/{approval}?wait=30", key=service.asker).json
    assert waiting["state"] == "expired" and waiting["card"] is None
    late = decide(service, approval)
    assert late.status == 409 and "is expired already" in late.json["error"]["message"]
    ended = service.run("print(1)", policy="shortly", key=service.asker, approval=approval).json
    assert ended["status"] == "denied" and "there was no decision in time" in ended["error"]["value"]


def test_an_approval_ends_with_its_time(service):
    approval = ask(service)
    assert decide(service, approval, scope="code", until_seconds=1).status == 200
    end = time.monotonic() + 20
    while service.run("print(1)", policy="asked", key=service.asker).status == 200:
        assert time.monotonic() < end
        time.sleep(0.1)
    late = service.run("print(1)", policy="asked", key=service.asker, approval=approval)
    assert late.status == 409 and "has expired" in late.json["error"]["message"]


def test_scopes_reach_as_far_as_they_say(service):
    approval = ask(service)
    decide(service, approval, scope="code")
    ran = [service.run("print(1)", policy="asked", key=service.asker).json["approval"] for _ in range(3)]
    assert ran == [approval] * 3
    assert service.run("print(2)", policy="asked", key=service.asker).status == 202
    approval = ask(service, policy="timed")
    decide(service, approval, scope="time", until_seconds=600)
    ran = service.run("print(3)", policy="timed", key=service.asker).json
    assert ran["stdout"] == "3\n" and ran["approval"] == approval
    assert service.run("print(3)", policy="timed", key=service.key("--tenant", service.tenant)).status == 202, "the asker's alone"
    assert service.run("print(3)", policy="asked", key=service.asker).status == 202, "under this policy"


def test_cells_are_asked_about_and_programs_wait_for_their_session(service):
    made = service.call("POST", "/v1/sessions", {"policy": "asked"}, key=service.asker).json
    place = f"/v1/sessions/{made['id']}"

    def cell(code, where=place, **more):
        return service.call("POST", f"{where}/contexts/python/run", {"code": code} | more, key=service.asker)
    program = {"command": ["true"]}
    assert service.call("POST", f"{place}/processes", program, key=service.asker).status == 403
    asked = cell("x = 1")
    assert asked.status == 202 and asked.json["status"] == "pending_approval"
    card = service.call("GET", f"/v1/approvals/{asked.json['approval']}", key=service.decider).json
    assert card["card"]["kind"] == "cell" and card["session"] == made["id"] and "session" in card["scopes"]
    decide(service, asked.json["approval"])
    assert cell("x = 1", approval=asked.json["approval"]).json["status"] == "ok"
    assert cell("x = 1").status == 202, "it was for once"
    asked = cell("print(x)").json["approval"]
    decide(service, asked, scope="session")
    assert cell("print(x)").json["stdout"] == "1\n" and cell("print(x + 1)").json["stdout"] == "2\n"
    assert service.call("POST", f"{place}/processes", program, key=service.asker).status == 201
    other = service.call("POST", "/v1/sessions", {"policy": "asked"}, key=service.asker).json
    assert cell("print(1)", f"/v1/sessions/{other['id']}").status == 202, "another session"
    # In another key's session one asks in one's own name: that key's approvals are not one's own, nor may one decide.
    both = service.key("--tenant", service.tenant, "--scope", "sessions,approve")
    assert service.call("POST", f"{place}/processes", program, key=both).status == 403
    asked = service.call("POST", f"{place}/contexts/python/run", {"code": "print(x + 2)"}, key=both)
    assert asked.status == 202, asked.body
    asked = service.call("GET", f"/v1/approvals/{asked.json['approval']}", key=service.decider).json
    assert asked["asker"] == both["id"] and decide(service, asked["id"], key=both).status == 403
    for session in (made, other):
        service.call("DELETE", f"/v1/sessions/{session['id']}", key=service.asker)


def test_a_pre_check_can_require_an_approval(service):
    assert service.run("print(1)", policy="looked", key=service.asker).json["stdout"] == "1\n"
    code = "import subprocess\nprint(subprocess.run(['echo', 'x'], capture_output=True).stdout)"
    approval = ask(service, code, policy="looked")
    card = service.call("GET", f"/v1/approvals/{approval}", key=service.decider).json["card"]
    assert "precheck" in card["reasons"] and card["checks"]["decision"] == "ask"
    assert {finding["line"] for finding in card["checks"]["findings"]} >= {1}
    decide(service, approval)
    ran = service.run(code, policy="looked", key=service.asker).json
    assert ran["status"] == "ok" and ran["approval"] == approval and ran["checks"]["decision"] == "ask"
    assert ask(service, code, policy="looked") != approval
    warned = ask(service, "import socket", policy="looked")
    assert service.call("GET", f"/v1/approvals/{warned}", key=service.decider).json["card"]["reasons"] == [
        "precheck_warning"]
    denied = service.run("import ctypes", policy="looked", key=service.asker).json
    assert denied["status"] == "denied" and denied["approval"] is None, "no approval is needed for that"


def test_more_than_usual_is_asked_about(service):
    assert service.run("print(1)", policy="beyond", key=service.asker).json["stdout"] == "1\n"
    assert service.run("print(1)", policy="beyond", key=service.asker, limits={"wall_ms": 4000}).status == 200
    approval = ask(service, policy="beyond", limits={"wall_ms": 6000})
    card = service.call("GET", f"/v1/approvals/{approval}", key=service.decider).json["card"]
    assert card["reasons"] == ["over_limits"]
    assert [row for row in card["limits"] if row["is_above"]] == [
        {"name": "wall", "asked": "6 s", "usual": "5 s", "is_above": True}]


def test_invisible_characters_are_listed(service):
    code = "a = 1\nif 'user\u202e \u2066# only\u2069 \u2066':\n    pass\x0c\nb = '\u200b\ufeff\U000e0041'"
    approval = ask(service, code)
    card = service.call("GET", f"/v1/approvals/{approval}", key=service.decider).json["card"]
    assert card["code"] == code
    assert [(row["line"], row["character"]) for row in card["hidden_characters"]] == [
        (2, "U+202E"), (2, "U+2066"), (2, "U+2069"), (2, "U+2066"), (3, "U+000C"), (4, "U+200B"), (4, "U+FEFF"),
        (4, "U+E0041")]
    large = service.run("#" * 300_000, policy="asked", key=service.asker)
    assert large.status == 403 and "too long for people to read" in large.json["error"]["message"]


def test_two_decisions_at_once_count_once(service):
    deciders = [service.key("--tenant", service.tenant, "--scope", "approve") for _ in range(8)]
    for turn in range(5):
        approval = ask(service, f"print({turn}, 'x')")
        answers = []
        threads = [threading.Thread(target=lambda n=n, key=key: answers.append(
            decide(service, approval, ("approve", "deny")[n % 2], key=key))) for n, key in enumerate(deciders)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answer.status for answer in answers) == [200] + [409] * 7
        won = next(answer.json["state"] for answer in answers if answer.status == 200)
        assert state(service, approval) == won
        said = [event["event"] for event in events(service) if event["facts"].get("approval") == approval]
        assert said == ["approval.requested", f"approval.{won}"]


def test_one_approval_lets_one_of_many_run(service):
    approval = ask(service)
    decide(service, approval)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(
        service.run("print(1)", policy="asked", key=service.asker, approval=approval))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [200] + [409] * 7


def test_waiting_clients_are_notified(service):
    told = []
    waiting = threading.Thread(target=lambda: told.append(
        service.call("GET", "/v1/approvals?state=pending&wait=60", key=service.decider).json["approvals"]))
    waiting.start()
    time.sleep(0.2)
    approval = ask(service)
    waiting.join(timeout=30)
    assert [row["id"] for row in told[0]] == [approval] and "card" not in told[0][0]
    waiting = threading.Thread(target=lambda: told.append(
        service.call("GET", f"/v1/approvals/{approval}?wait=60", key=service.asker).json))
    waiting.start()
    time.sleep(0.2)
    decide(service, approval)
    waiting.join(timeout=30)
    assert told[1]["state"] == "approved" and told[1]["scope"] == "once"


def kill_daemon(service):
    """By SIGKILL; `serve` starts the next one."""
    old = service.children()["gloveboxd"]
    os.kill(old, signal.SIGKILL)
    end = time.monotonic() + 60
    while True:
        try:
            if service.children().get("gloveboxd", old) != old and service.call("GET", "/healthz").status == 200:
                return
        except OSError:
            pass
        assert time.monotonic() < end, service.log.read_text()
        time.sleep(0.05)


def test_a_killed_daemon_neither_loses_nor_grants_approvals(service):
    waits, granted, spent = (ask(service, f"print({n})") for n in (1, 2, 3))
    short = ask(service, policy="shortly")
    session = service.call("POST", "/v1/sessions", {"policy": "minimal"}, key=service.asker).json["id"]
    assert decide(service, granted).status == decide(service, spent).status == 200
    ran = service.run("print(3)", policy="asked", key=service.asker).json
    assert ran["stdout"] == "3\n", (ran["status"], ran["error"], ran["exit_code"], ran["stderr"])
    kill_daemon(service)  # right after the decision, before any run
    time.sleep(1.1)
    assert [state(service, each) for each in (waits, granted, spent, short)] == [
        "pending", "approved", "used", "expired"]
    assert service.run("print(1)", policy="asked", key=service.asker).json["approval"] == waits
    ran = service.run("print(2)", policy="asked", key=service.asker).json
    assert ran["stdout"] == "2\n", (ran["status"], ran["error"], ran["exit_code"], ran["stderr"])
    assert service.run("print(2)", policy="asked", key=service.asker, approval=granted).status == 409
    assert service.run("print(3)", policy="asked", key=service.asker, approval=spent).status == 409
    assert decide(service, short).status == 409
    assert decide(service, waits).status == 200
    assert service.run("print(1)", policy="asked", key=service.asker).json["stdout"] == "1\n"
    told = [event["facts"] for event in events(service) if event["facts"].get("session") == session]
    assert [facts["end"] for facts in told] == ["", "daemon"], "the next one tells the end of its sessions"


def test_every_step_is_in_the_log_and_no_code_is_kept(service):
    schema = json.loads((TOP / "docs" / "reference" / "event.schema.json").read_text())
    planted = {"code": f"planted-code-{os.urandom(8).hex()}", "env": f"planted-env-{os.urandom(8).hex()}"}
    request = {"code": f"x = '{planted['code']}'", "env": {"TOKEN": planted["env"]}}
    for decision in ("approve", "deny"):
        approval = ask(service, **request)
        assert decide(service, approval, decision, reason="because").status == 200
        service.run(policy="asked", key=service.asker, **request)
    ask(service, policy="shortly", **request)
    time.sleep(1.2)
    service.call("GET", "/v1/approvals", key=service.decider)
    said = events(service)
    for event in said:
        jsonschema.validate(event, schema)
    said = [event for event in said if event["facts"].get("tenant") == service.tenant]
    assert [event["event"] for event in said if event["event"].startswith("approval")] == [
        "approval.requested", "approval.approved", "approval.used", "approval.requested", "approval.denied", "approval.requested",
        "approval.expired"]
    assert said[-1]["facts"]["approver"] == "nobody"
    kept = {"the log": json.dumps(records(service)).encode()}
    kept |= {path: path.read_bytes() for path in (service.glovebox.state / "daemon").rglob("*") if path.is_file()}
    for place, data in kept.items():
        for name, value in planted.items():
            assert value.encode() not in data, f"{name} stands in {place}"


def test_an_idempotency_key_waits_along(service):
    headers = {"Idempotency-Key": "k1"}
    request = {"code": "print(7)", "policy": "asked"}
    first = service.call("POST", "/v1/runs", request, key=service.asker, headers=headers)
    assert first.status == 202
    decide(service, first.json["approval"])
    ran = [service.call("POST", "/v1/runs", request, key=service.asker, headers=headers).json for _ in range(2)]
    assert [one["stdout"] for one in ran] == ["7\n", "7\n"], [(one["status"], one["error"]) for one in ran]
    assert ran[0]["id"] == ran[1]["id"], "it ran once"


def test_blank_lines_do_not_hide_what_follows(service):
    """Neither by their number nor by what they are made of."""
    code = "print(1)\n\n\n\nprint(2)\n" + " \t\r\n\n" * 200 + "import os\n" + "\n" * 7
    shown = service.glovebox("approvals", "--daemon", service.socket, ask(service, code)).stdout.decode()
    assert "code      413 lines, 410 of them blank\n" in shown
    assert "     2 | \n     3 | \n     4 | \n     5 | print(2)\n      | … 400 blank lines …\n   406 | import os\n" in shown.replace("!", " ")
    assert shown.count("\n") < 60 and "… 7 blank lines …" in shown
    assert "code      1 line, 0 of them blank" in service.glovebox("approvals", "--daemon", service.socket, ask(service, "print(3)")).stdout.decode()


def test_the_command_line_shows_and_decides(service):
    code = "x = 1 # \u202e\x1b[2J\nprint(x)"
    approval = ask(service, code)
    cli = ("--daemon", service.socket)
    listed = service.glovebox("approvals", *cli)
    heads, *rows = listed.stdout.decode().splitlines()
    row = next(line for line in rows if line.startswith(approval))
    assert "pending" in row and row.endswith("Z always") and heads.startswith("ID  ") and heads.isupper(), (heads, row)
    assert all(service.glovebox("approvals", *words).stdout == listed.stdout for words in (["list", *cli], [*cli, "ls"]))
    assert service.glovebox("approvals", "show", *cli, approval).stdout.startswith(f"approval  {approval}".encode())
    assert b"approvals takes no 'apr_2'" in service.glovebox("approvals", *cli, "apr_1", "apr_2").stderr
    assert b"no approval that is approved begins with" in service.glovebox("approvals", *cli, "revoke", approval[:12]).stderr
    shown = service.glovebox("approvals", *cli, approval).stdout.decode()
    assert "<U+202E><U+001B>[2J" in shown and "\x1b" not in shown and "\u202e" not in shown
    assert "BEWARE" in shown and "    2 | print(x)" in shown and "to the network: nothing" in shown
    done = service.glovebox("deny", *cli, "--reason", "no", approval, env={"GLOVEBOX_API_KEY": service.decider["key"]})
    assert done.returncode == 0 and done.stdout.decode() == f"{approval} is denied\n"
    others = [ask(service, f"print('beginnings', {n})") for n in range(2)]
    several = service.glovebox("approve", *cli, "apr_").stderr.decode()
    assert re.search(r"'apr_' begins more than one: apr_[0-9a-f]{32} and apr_[0-9a-f]{32}; write more of it", several)
    none = service.glovebox("approve", *cli, "apr_" + "0" * 20).stderr.decode()
    assert "no approval that is pending begins with 'apr_00" in none
    assert others[0] in service.glovebox("approvals", *cli, others[0][:16]).stdout.decode()
    for other in others:
        done = service.glovebox("deny", *cli, other[:16], env={"GLOVEBOX_API_KEY": service.decider["key"]})
        assert done.stdout.decode() == f"{other} is denied\n", done.stderr
    late = service.glovebox("approve", *cli, approval, "--scope", "once", "--until", "5m")
    assert late.returncode == 125 and b"is denied already" in late.stderr
    mistaken = service.glovebox("approve", *cli, "../runs")
    assert mistaken.returncode == 125 and b"is no id of an approval" in mistaken.stderr
    waits = service.glovebox("run", *cli, "--no-wait", "--policy", "asked", "-c", "print(5)")
    assert waits.returncode == 126 and b"asks a person first" in waits.stderr and waits.stdout == b""


def test_no_key_takes_all_places_and_pages_are_whole(service):
    """A key has as many places as are left for others, so that the next one finds some. The list comes in pages."""
    waiting, answer = [], service.run("print(0)", policy="asked", key=service.asker)
    while answer.status == 202:
        waiting.append(answer.json["approval"])
        answer = service.run(f"print({len(waiting)})", policy="asked", key=service.asker)
    assert answer.status == 429 and "for other keys" in answer.json["error"]["message"] and len(waiting) == 32
    other = service.key("--tenant", service.tenant)
    others = ask(service, "print('other')", key=other)
    assert decide(service, waiting[0], "deny").status == 200
    for key, state, expected in ((service.decider, "pending", [*waiting[1:], others]), (service.decider, "all", [*waiting, others]),
                                 (service.asker, "pending", waiting[1:]), (service.asker, "all", waiting),
                                 (other, "all", [others]), (service.key("--tenant", "b"), "all", [])):
        seen, cursor = [], ""
        while cursor is not None:
            page = service.call("GET", f"/v1/approvals?state={state}&limit=10{cursor and '&cursor=' + cursor}", key=key).json
            assert len(page["approvals"]) <= 10
            seen += [row["id"] for row in page["approvals"]]
            assert page["approvals"] or not cursor, "a page that is announced is not empty"
            cursor = page["next_cursor"]
        assert sorted(seen) == sorted(expected) and len(set(seen)) == len(seen)
    assert service.call("GET", f"/v1/approvals?cursor={others}", key=service.asker).status == 404, "another's"
    assert service.call("GET", "/v1/approvals?cursor=apr_1", key=service.asker).status == 404


def test_a_run_waits_for_its_decision(service):
    """As the owner, all at once: approved after the daemon was killed, denied, expired, and interrupted."""
    def begin(name, policy="asked", *more):
        return service.glovebox.start("run", "--daemon", service.socket, "--policy", policy, *more, "-c", f"print('{name}')",
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)

    def waiting(name):
        sha256 = hashlib.sha256(f"print('{name}')".encode()).hexdigest()
        return [row["id"] for row in service.call("GET", "/v1/approvals?state=pending").json["approvals"]
                if row["sha256"] == sha256]

    mark = os.urandom(4).hex()
    calls = {name: begin(f"{name}{mark}", "shortly" if name == "expired" else "asked", *(["--json"] if name == "json" else []))
             for name in ("approved", "json", "denied", "expired", "interrupted")}
    ids = {}
    for name in ("approved", "json", "denied", "interrupted"):
        for _ in range(1200):
            if found := waiting(f"{name}{mark}"):
                break
            time.sleep(0.05)
        [ids[name]] = found
    line = calls["approved"].stderr.readline()
    assert f"glovebox approve {ids['approved']}" in line and "policy asked asks a person first; waiting 3" in line
    calls["interrupted"].send_signal(signal.SIGINT)
    out, said = calls["interrupted"].communicate(timeout=30)
    assert calls["interrupted"].returncode == 130 and out == ""
    assert said.splitlines()[-1] == (f"glovebox: cancelled; {ids['interrupted']} waits on and can still be decided on: once "
                                     f"approved, the same call runs; glovebox deny {ids['interrupted']} ends it"), said
    out, said = calls["expired"].communicate(timeout=30)
    assert calls["expired"].returncode == 126 and "not decided in time" in said and out == ""
    kill_daemon(service)
    done = service.glovebox("deny", "--daemon", service.socket, "--reason", "not today", ids["denied"])
    assert done.returncode == 0, done.stderr
    for name in ("approved", "json"):
        assert service.glovebox("approve", "--daemon", service.socket, ids[name]).returncode == 0
    out, said = calls["denied"].communicate(timeout=30)
    assert (calls["denied"].returncode, out) == (126, "") and "not today" in said, said
    out, said = calls["approved"].communicate(timeout=30)
    assert (calls["approved"].returncode, out) == (0, f"approved{mark}\n"), said
    out, said = calls["json"].communicate(timeout=30)
    assert calls["json"].returncode == 0 and json.loads(out)["approval"] == ids["json"], said
    assert waiting(f"interrupted{mark}") == [ids["interrupted"]], "it can be decided on later"


def test_a_cell_waits_for_its_decision(service):
    cli = ("--daemon", service.socket)
    made = service.glovebox("session", "new", *cli, "--policy", "asked")
    assert made.returncode == 0, made.stderr
    session, pipe = made.stdout.decode().strip(), subprocess.PIPE

    def begin(*words, stdin=subprocess.DEVNULL):
        return service.glovebox.start(*words, stdout=pipe, stderr=pipe, stdin=stdin, text=True)

    def waiting(call):
        line = call.stderr.readline()
        assert "policy asked asks a person first; waiting" in line and "the owner of the daemon" in line, line
        return line.split("glovebox approve ")[1].split()[0]

    cell = ("session", "run", *cli, session)
    for verb, status, out in (("approve", 0, "42\n"), ("deny", 126, "")):
        call = begin(*cell, "-c", f"print(6 * 7) # {verb}")
        assert service.glovebox(verb, *cli, *(["--reason", "not today"] if verb == "deny" else []), waiting(call)).returncode == 0
        said = call.communicate(timeout=30)
        assert (call.returncode, said[0]) == (status, out) and ("not today" in said[1]) == (verb == "deny"), said
    call = begin(*cell, "-c", "print('interrupted')")
    approval = waiting(call)
    call.send_signal(signal.SIGINT)
    said = call.communicate(timeout=30)
    assert call.returncode == 130 and f"cancelled; {approval} waits on and can still be decided on" in said[1] and said[0] == "", said
    held = service.glovebox(*cell, "--no-wait", "-c", "print('interrupted')")
    assert held.returncode == 126 and approval.encode() in held.stderr and held.stdout == b"", held
    prompt = begin("repl", *cli, session, stdin=pipe)
    prompt.stdin.write("print(1)\nprint('two')\n")
    prompt.stdin.flush()
    waiting(prompt)
    prompt.send_signal(signal.SIGINT)
    assert "can still be decided on" in prompt.stderr.readline()
    assert service.glovebox("approve", *cli, waiting(prompt)).returncode == 0
    said = prompt.communicate(timeout=30)
    assert prompt.returncode == 0 and said[0].endswith("two\n"), said
    assert service.glovebox("session", "kill", *cli, session).returncode == 0


@pytest.mark.parametrize("typed, status, says", [
    ("y\n", 0, "42"), ("n\n", 126, "denied at the terminal"), ("\x04", 126, "cannot wait: start glovebox serve")])
def test_a_person_at_the_terminal_is_asked(glovebox, typed, status, says):
    policies = glovebox.folder / "policies"
    policies.mkdir()
    (policies / "asked.yaml").write_text("name: asked\nextends: minimal\n" + POLICIES["asked"] + "\n")
    pid, terminal = begin_on_terminal([glovebox.program, "run", "--private", "--policy", "asked", "-c", "print(6 * 7)"],
                                      glovebox.environment({"GLOVEBOX_POLICIES": f"{policies}:{TOP / 'policies'}"}))
    said = b""
    while b"[n]o: " not in said:
        said += os.read(terminal, 4096)
    assert b"    1 | print(6 * 7)" in said
    os.write(terminal, typed.encode())
    try:
        while more := os.read(terminal, 4096):
            said += more
    except OSError:
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == status, said
    assert says in said.decode().split("[n]o: ")[1]


# --- taken back ----------------------------------------------------------------------------------------

def assert_opens(service, event, code, request):
    """What the log says of code and request is guessed by nobody, and recomputed from the documents by an auditor."""
    auditor = service.key("--tenant", service.tenant, "--scope", "audit")
    place = f"/v1/receipts/{event['id']}/opening"
    assert service.call("GET", place, key=service.asker).status == 403
    items = {one["name"]: one["sha256"] for one in service.call("GET", place, key=auditor).json["items"]}
    assert items["code"] == hashlib.sha256(code).hexdigest() != event["facts"]["code"]
    manifest = json.loads((service.glovebox.state / "templates" / "minimal" / "manifest.json").read_text())
    words = ["glovebox approval 1", event["facts"]["policy"], manifest["digest"], "", "", "python"]
    for name in sorted(request):
        words += [name, json.dumps(request[name]).replace("/", "\\/")]
    texts = b"".join(len(word).to_bytes(8, "little") + word.encode() for word in words)
    assert items["request"] == hashlib.blake2b(texts, digest_size=32).hexdigest()


def test_an_approval_is_taken_back_until_it_was_used(service):
    """By a key that may decide or by the one that asked; the log says by whom, and the same request is asked about again."""
    approval = ask(service)
    refused = decide(service, approval, "revoke")
    assert refused.status == 409 and "deny it instead" in refused.json["error"]["message"]
    assert decide(service, approval, scope="code", until_seconds=600).status == 200
    assert service.run("print(1)", policy="asked", key=service.asker).json["status"] == "ok"
    taken = decide(service, approval, "revoke", reason="not any more")
    assert taken.status == 200 and taken.json["state"] == "revoked" and taken.json["reason"] == "not any more"
    named = service.run("print(1)", policy="asked", key=service.asker, approval=approval)
    assert named.status == 409 and "was revoked: not any more" in named.json["error"]["message"]
    again = ask(service)
    assert again != approval and decide(service, approval, "revoke").status == 409
    told = [event for event in events(service) if event["facts"].get("approval") == approval]
    assert [event["event"] for event in told] == ["approval.requested", "approval.approved", "approval.revoked"]
    assert_opens(service, told[0], b"print(1)", {"code": "print(1)", "language": "python", "policy": "asked"})
    assert told[-1]["facts"]["approver"] == service.decider["id"]
    assert decide(service, again).status == 200
    assert service.run("print(1)", policy="asked", key=service.asker).json["status"] == "ok"
    spent = decide(service, again, "revoke")
    assert spent.status == 409 and "is used already" in spent.json["error"]["message"]
    stranger = service.key("--tenant", "b", "--scope", "run,approve")
    third = ask(service)
    assert decide(service, third).status == 200
    assert decide(service, third, "revoke", key=stranger).status == 404
    assert decide(service, third, "revoke", key=service.asker).status == 403, "it lacks the scope"
    done = service.glovebox("approvals", "revoke", third[:14], "--daemon", service.socket, "--reason", "by hand",
                            env={"GLOVEBOX_API_KEY": service.decider["key"]})
    assert done.returncode == 0 and done.stdout.decode() == f"{third} is revoked\n", done
    assert state(service, third) == "revoked"
    ask(service)


@pytest.mark.parametrize("scope", ["once", "code", "time"])
def test_an_approval_ends_with_the_key_that_gave_it(service, scope):
    decider = service.key("--tenant", service.tenant, "--scope", "approve", "--name", "Ada")
    approval = ask(service, policy="timed")
    assert decide(service, approval, key=decider, scope=scope).status == 200
    shown = service.glovebox("approvals", approval, "--daemon", service.socket).stdout.decode()
    assert f"approver  Ada, key {decider['id']}\n" in shown and f", of tenant {service.tenant}\n" in shown, shown
    assert re.search(r"^holds +\d+ min \d+ s, until ", shown, re.M), shown
    assert service.glovebox("key", "revoke", decider["id"]).returncode == 0
    assert state(service, approval) == "revoked", "it is seen at once"
    rows = service.call("GET", "/v1/approvals?state=all&limit=1000", key=service.decider).json["approvals"]
    assert {row["id"]: row["state"] for row in rows}[approval] == "revoked"
    named = service.run("print(1)", policy="timed", key=service.asker, approval=approval)
    assert named.status == 409 and "was revoked: the approver's key" in named.json["error"]["message"]
    assert ask(service, policy="timed") != approval
    told = [event["event"] for event in events(service) if event["facts"].get("approval") == approval]
    assert told == ["approval.requested", "approval.approved", "approval.revoked"]

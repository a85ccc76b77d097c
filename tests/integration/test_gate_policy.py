"""Expectations of a policy apply in addition to those of a request, and output that has not passed can be withheld."""

import hashlib
import json
import time

import pytest
import session_rig
from conftest import STATE, TOP, Glovebox
from serving import let_others_in
from test_branches import HOSTILE
from test_gate import gate_in_receipt, payload_of

HEAD = "extends: minimal\ntemplate: minimal\nlanguages: [python, bash]\nlimits: {wall: 3s}\n"
OF_TELLS = {"secrets": "forbid", "stdout": {"schema": {"type": "integer"}}}
POLICIES = {
    "tells": HEAD + "expect: {stdout: {schema: {type: integer}}, secrets: forbid}\n",
    "holds": "extends: tells\nexpect:\n  on_fault: withhold\n",
    "files": HEAD + "expect:\n  on_fault: withhold\n  artifacts:\n    - {name: n.json, schema: {type: integer}}\n"
                    "  others: forbid\n",
    "values": HEAD + "expect: {on_fault: withhold, result: {schema: {type: integer}}}\n",
    "looks": "extends: holds\nprecheck: {subprocess: deny}\n",
    "lets": HEAD + "expect: {on_fault: withhold}\n",
}
SECRET = "AKIA" + "ABCDEFGHIJKLMNOP"
PRINT_SECRET = "print('AKIA' + 'ABCDEFGHIJKLMNOP')"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    folder = tmp_path_factory.mktemp("p")
    policies = folder / "policies"
    policies.mkdir()
    for name, text in POLICIES.items():
        (policies / f"{name}.yaml").write_text(f"name: {name}\n{text}")
    (policies / "minimal.yaml").write_text((TOP / "policies" / "minimal.yaml").read_text())
    glovebox = Glovebox(folder)
    glovebox.state = folder / "state"
    (glovebox.state / "templates").mkdir(parents=True)
    (glovebox.state / "templates" / "minimal").symlink_to(STATE / "templates" / "minimal")
    let_others_in(glovebox.state)
    started = session_rig.Daemon(glovebox, folder, policies=str(policies))
    started.glovebox = glovebox
    yield started
    started.stop()


def run(daemon, policy, code, **request):
    status, result = daemon.call("POST", "/v1/runs", {"code": code, "language": "python", "policy": policy} | request)
    assert status == 200, result
    return result


def rules_of(result):
    return [row["rule"] for row in result["gate"]["findings"]]


def opened(daemon, result):
    """What the daemon's owner, or an auditor, gets of a run whose output was withheld."""
    status, opening = daemon.call("GET", f"/v1/receipts/{result['receipt']}/opening")
    assert status == 200, opening
    return opening["sealed"]["predicate"] | {"hashes": {f"{one['group']}/{one['name']}": one["sha256"]
                                                        for one in opening["sealed_items"]}}


def rules_withheld(daemon, result):
    assert result["gate"]["findings"] == []
    return [row["rule"] for row in opened(daemon, result)["gate"]["findings"]]


def digest_of(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def assert_withheld(result):
    assert result["stdout"] == result["stderr"] == "" and result["results"] == result["artifacts"] == [], result
    assert result["error"]["name"] == "Withheld" and "withheld" in result["error"]["value"], result
    assert result["gate"]["withheld"] == result["error"]["value"] and result["gate"]["verdict"] == "failed"
    assert result["gate"]["findings"] == result["denials"] == result["network"] == result["limit_hits"] == []
    assert result["exit_code"] is result["signal"] is result["limit"] is None
    assert set(result["truncated"].values()) == {0, None}
    assert all(not value for name, value in result["usage"].items() if name not in ("queued_ms", "start")), result["usage"]


def test_both_have_to_be_so(daemon):
    """What the policy expects holds without a word of the request, and a request can only add to it."""
    result = run(daemon, "tells", "print(5)")
    assert result["gate"]["verdict"] == "passed" and result["gate"]["expectation"] == digest_of(OF_TELLS), result
    assert result["gate"]["withheld"] is None and gate_in_receipt(daemon, result)["withheld"] is False
    result = run(daemon, "tells", "print('five')")
    assert rules_of(result) == ["json"] and result["stdout"] == "five\n" and result["status"] == "ok"
    wish = {"stdout": {"max_bytes": 2}}
    result = run(daemon, "tells", "print(5)", expect=wish)
    assert result["gate"]["verdict"] == "passed" and result["gate"]["expectation"] == digest_of([OF_TELLS, wish]), result
    assert gate_in_receipt(daemon, result)["expectation"] == digest_of([OF_TELLS, wish])
    assert rules_of(run(daemon, "tells", "print(500)", expect=wish)) == ["too_large"]
    for loose in ({"secrets": "allow"}, {"stdout": {"schema": True}}, {"stdout": {"max_bytes": 4096}}):
        assert set(rules_of(run(daemon, "tells", PRINT_SECRET, expect=loose))) == {"json", "secret"}, loose


def test_what_has_not_passed_is_withheld(daemon):
    result = run(daemon, "holds", "import sys; print('five'); print('words', file=sys.stderr); open('a', 'w').write('x')")
    assert_withheld(result)
    assert (result["status"], result["fault"]) == ("error", "policy") and rules_withheld(daemon, result) == ["json"]
    proof = gate_in_receipt(daemon, result)
    assert proof["withheld"] is True and proof["verdict"] == "failed"
    truth = opened(daemon, result)
    assert truth["outcome"]["status"] == "ok" and truth["outcome"]["exit_code"] == 0 and truth["artifacts"][0]["name"] == "a"
    assert truth["hashes"] == {f"{name}": hashlib.sha256(data).hexdigest() for name, data in (
        ("outputs/stdout", b"five\n"), ("outputs/stderr", b"words\n"), ("artifacts/a", b"x"),
        ("inputs/code", b"import sys; print('five'); print('words', file=sys.stderr); open('a', 'w').write('x')"))}
    status, receipt = daemon.call("GET", f"/v1/receipts/{result['receipt']}")
    assert status == 200
    result = run(daemon, "holds", "print(5)")
    assert result["stdout"] == "5\n" and result["error"] is None and result["gate"]["withheld"] is None


@pytest.mark.parametrize("code", [
    "raise ValueError('AKIA' + 'ABCDEFGHIJKLMNOP')",
    PRINT_SECRET + "; import os; os._exit(3)",
    PRINT_SECRET + "; import os; os.kill(os.getpid(), 9)",
    PRINT_SECRET + "\nwhile True: pass",
])
def test_no_end_of_a_run_is_a_way_around(daemon, code):
    result = run(daemon, "holds", code, limits={"wall_ms": 1500})
    assert_withheld(result)
    assert SECRET not in json.dumps(result)


def test_a_cancelled_run_reveals_nothing(daemon):
    code = PRINT_SECRET + "\nprint('x', flush=True)\nimport time; time.sleep(30)"
    answer = daemon.open("POST", "/v1/runs", {"code": code, "language": "python", "policy": "holds"},
                         {"Prefer": "respond-async"})
    assert answer.status == 202
    run_id = json.loads(answer.read())
    place = f"/v1/runs/{run_id['id']}"
    for _ in range(200):
        told = daemon.call("GET", place)[1]
        assert SECRET not in json.dumps(told)
        if told["status"] == "running":
            break
        time.sleep(0.02)
    daemon.call("DELETE", place)
    for _ in range(200):
        told = daemon.call("GET", place)[1]
        if told["status"] == "cancelled":
            break
        time.sleep(0.02)
    assert_withheld(told)


def test_no_event_reveals_what_is_withheld(daemon):
    for code, is_told in (("print(5)", True), (PRINT_SECRET, False)):
        stream = session_rig.Events(daemon.open("POST", "/v1/runs", {"code": code, "language": "python", "policy": "holds"},
                                                {"Accept": "text/event-stream"}))
        events = []
        while not events or events[-1][0] != "end":
            events.append(stream.next())
        assert ("stdout" in [name for name, _ in events]) is is_told, events
        assert SECRET not in json.dumps(events)


def test_artifacts_are_the_callers_when_they_have_passed(daemon):
    text, bad = f"{time.time_ns()}", f'"{time.time_ns()}"'
    digests = [hashlib.sha256(data.encode()).hexdigest() for data in (text, bad)]
    result = run(daemon, "files", f"open('n.json', 'w').write('{bad}')")
    assert_withheld(result)
    assert rules_withheld(daemon, result) == ["schema"]
    assert daemon.open("GET", f"/v1/artifacts/sha256:{digests[1]}").status == 404
    result = run(daemon, "files", f"open('n.json', 'w').write('{text}')")
    assert [row["sha256"] for row in result["artifacts"]] == [digests[0]], result
    assert daemon.open("GET", f"/v1/artifacts/sha256:{digests[0]}").read() == text.encode()
    result = run(daemon, "files", f"open('n.json', 'w').write('{text}')")  # the same bytes again
    assert daemon.open("GET", f"/v1/artifacts/sha256:{digests[0]}").read() == text.encode()
    result = run(daemon, "files", f"open('n.json', 'w').write('{text}'); open('{SECRET}', 'w').write('x')")
    assert_withheld(result)
    assert rules_withheld(daemon, result) == ["unexpected"] and SECRET not in json.dumps(result)
    proof = payload_of(daemon.call("GET", f"/v1/receipts/{result['receipt']}")[1])["predicate"]
    assert SECRET not in json.dumps(proof)
    assert proof["artifacts"] == [] and proof["outputs"] == {"results": None, "stderr": None, "stdout": None}
    hashes = opened(daemon, result)["hashes"]
    assert hashes["artifacts/n.json"] == digests[0] and hashes[f"artifacts/{SECRET}"] == hashlib.sha256(b"x").hexdigest()
    result = run(daemon, "files", f"import os; os.symlink('/', '{SECRET}'); os.mkfifo('{SECRET}2')")
    assert_withheld(result)
    assert SECRET not in json.dumps(result)
    assert daemon.open("GET", f"/v1/artifacts/sha256:{digests[0]}").read() == text.encode(), "another run's stay"


def test_what_cannot_be_looked_at_is_refused(daemon):
    """A request under which nothing could be compared is refused."""
    status, answer = daemon.call("POST", "/v1/runs", {"code": "5", "language": "python", "policy": "values"})
    assert status == 400 and '"mode": "cell"' in json.dumps(answer).replace("\\", ""), answer
    result = run(daemon, "values", "5", mode="cell")
    assert result["gate"]["verdict"] == "passed" and result["results"], result
    assert_withheld(run(daemon, "values", "'x'", mode="cell"))
    status, answer = daemon.call("POST", "/v1/sessions", {"policy": "files"})
    assert status == 400 and "expects artifacts" in answer["error"]["message"], answer


def test_cells_of_a_session(daemon):
    session = daemon.session(policy="holds")
    try:
        result = session.call("POST", "/contexts/python/run", {"code": "print(5)"})[1]
        assert result["gate"]["verdict"] == "passed" and result["stdout"] == "5\n", result
        assert_withheld(session.call("POST", "/contexts/python/run", {"code": "x = 7\n" + PRINT_SECRET + "\nx"})[1])
        result = session.call("POST", "/contexts/python/run", {"code": "print(x)"})[1]
        assert result["stdout"] == "7\n", "the context is as it was"
        for method, path, body in (
                ("POST", "/processes", {"command": ["true"]}),
                ("GET", "/files/x", None), ("GET", "/files:tar?path=x", None), ("GET", "/files:watch?path=x", None),
                ("POST", "/files:list", {"path": "x"}), ("POST", "/files:stat", {"path": "x"})):
            status, answer = session.call(method, path, body)
            assert status == 403 and "withholds" in answer["error"]["message"], (path, status, answer)
        assert session.call("PUT", "/files/x", 1)[0] in (200, 201), "in it may go"
    finally:
        session.call("DELETE")


def test_an_interpreter_that_is_not_copied_says_nothing(daemon):
    """Why there is no branch is its word, or that of the code which plays it: in the parent, or in the copy."""
    says = """import json, os, struct
def in_parent():
    body = json.dumps({"name": "E", "value": "AKIA" + "ABCDEFGHIJKLMNOP"}).encode()
    os.write(63, struct.pack("<IHHIIHHI", 8 + len(body), 76, 0, 16, 0, 3, 1, 0) + body)
    raise OSError(95, "no")
device = os.stat("/tmp").st_dev
def in_copy(is_restored):
    if os.stat("/tmp").st_dev != device:
        os.write(1, b"AKIA" + b"ABCDEFGHIJKLMNOP")
        os._exit(1)
    return is_restored
"""
    # Of the parent's failure the copy, which gets no image, may tell first.
    for body, why in (("in_parent()", ("it has something that cannot be copied", "ended with status 125")),
                      ("in_copy(image(*a))", ("ended with status 1",))):
        session = daemon.session(policy="holds")
        try:
            session.call("POST", "/contexts/python/run", {"code": says + HOSTILE["no image at all"].replace(
                "lambda *a: BODY", f"lambda *a, image=c.cell_contents: {body}")})
            status, answer = session.call("POST", "/branch", {})
            if status == 201:
                status, answer = daemon.call("POST", f"/v1/sessions/{answer['id']}/contexts/python/run", {"code": "1"})
            assert status == 409 and any(words in answer["error"]["message"] for words in why), answer
        finally:
            session.call("DELETE")
    assert SECRET not in (daemon.folder / "log").read_text()


def test_events_and_the_end_of_a_cell_reveal_nothing(daemon):
    session = daemon.session(policy="holds")
    place = f"{session.place}/contexts/python/run"
    try:
        stream = session_rig.Events(daemon.open("POST", place, {"code": PRINT_SECRET + "\n1/0"}, {"Accept": "text/event-stream"}))
        told = [stream.next()]
        while told[-1][0] != "end":
            told.append(stream.next())
        assert not {"stdout", "error", "result"} & {name for name, _ in told} and SECRET not in json.dumps(told), told
        assert_withheld(told[-1][1])
        running = session_rig.Events(daemon.open("POST", place, {"code": PRINT_SECRET + "\nimport time; time.sleep(30)"},
                                                 {"Accept": "text/event-stream"}))
        assert running.next()[0] == "started"
        session.call("DELETE")
        result = running.until("end")
        assert_withheld(result)
        assert SECRET not in json.dumps(result)
    finally:
        session.call("DELETE")


def test_what_never_ran_says_why_and_withholds_nothing(daemon):
    code = "import subprocess; subprocess.run(['true'])"
    result = run(daemon, "looks", code)
    assert result["status"] == "denied" and result["gate"]["withheld"] is None, result
    assert result["error"] is None or result["error"]["name"] != "Withheld"
    assert result["denials"] and result["denials"][0]["layer"] == "precheck", result
    assert run(daemon, "looks", code, check_only=True)["gate"] is None
    done = daemon.glovebox("run", "--policy", "looks", "-c", code, env={"GLOVEBOX_SOCKET": daemon.path, "GLOVEBOX_POLICIES": ""})
    assert done.returncode == 126 and b"withheld" not in done.stderr and b"found out" not in done.stderr, done.stderr


def test_a_policy_that_expects_nothing_withholds_for_requests(daemon):
    assert run(daemon, "lets", "print('x')")["gate"] is None
    assert_withheld(run(daemon, "lets", "print('x')", expect={"stdout": {"schema": True}}))
    session = daemon.session(policy="lets")
    assert session.call("POST", "/processes", {"command": ["true"]})[0] == 201
    session.call("DELETE")


def counts(daemon):
    """What /metrics says of verdicts, and of what was withheld."""
    lines = daemon.open("GET", "/metrics").read().decode().splitlines()
    return {line.split()[0]: float(line.split()[1]) for line in lines
            if line.startswith(("glovebox_output_check_verdicts_total{", "glovebox_withheld_outputs_total ", "glovebox_artifacts_total "))}


def test_verdicts_are_counted(daemon):
    before = counts(daemon)
    run(daemon, "tells", "print(5)")
    run(daemon, "tells", "print('five')")
    run(daemon, "holds", "print('five')")
    assert_withheld(run(daemon, "holds", "print(5)", expect={"stdout": {"schema": {"$ref": "#"}}}))
    run(daemon, "files", "open('n.json', 'w').write('x')")
    run(daemon, "lets", "print('nothing is expected')")
    after = counts(daemon)
    grown = {name.partition("{")[2].rstrip("}") or name: after[name] - before[name] for name in after}
    assert grown == {'verdict="passed"': 1, 'verdict="failed"': 4, 'verdict="error"': 0,
                     "glovebox_withheld_outputs_total": 3, "glovebox_artifacts_total": 0}, grown


def test_the_command_line_says_it(daemon):
    policies = {"GLOVEBOX_POLICIES": str(daemon.folder / "policies")}
    environment = {"GLOVEBOX_SOCKET": daemon.path, "GLOVEBOX_POLICIES": ""}
    done = daemon.glovebox("run", "--policy", "holds", "-c", "print('five')", env=environment)
    assert done.returncode == 65 and done.stdout == b"", done
    assert b"is withheld" in done.stderr and b"scope audit" in done.stderr, done.stderr
    done = daemon.glovebox("run", "--policy", "holds", "-c", "print(5)", env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"5\n", b"")
    shown = daemon.glovebox("policy", "show", "holds", env=policies).stdout.decode()
    assert "on_fault withhold" in shown and '{"schema":{"type":"integer"}}' in shown, shown
    explained = daemon.glovebox("policy", "explain", "--policy", "holds", env=policies).stdout.decode()
    lines = {line.split()[0]: line.split()[-1] for line in explained.splitlines() if line.startswith("  expect")}
    assert lines["expect.stdout"].endswith("tells.yaml:6") and lines["expect.secrets"].endswith("tells.yaml:6"), explained
    assert lines["expect.on_fault"].endswith("holds.yaml:4"), explained
    told = daemon.glovebox("prompt", "--policy", "holds", env=policies).stdout.decode()
    assert '"type":"integer"' in told and "withheld" in told, told
    policy = next(row for row in daemon.call("GET", "/v1/policies")[1]["policies"] if row["name"] == "holds")
    assert policy["policy"]["expect"] == {"all": [OF_TELLS], "on_fault": "withhold"}, policy


def test_a_replay_compares_the_verdict_again(daemon, tmp_path):
    script, receipt, wish, other = (tmp_path / name for name in ("script.py", "receipt.json", "wish.json", "other.json"))
    script.write_text("print('five')\n")
    wish.write_text(json.dumps({"stdout": {"max_bytes": 2}}))
    other.write_text(json.dumps({"stdout": {"max_bytes": 3}}))
    environment = {"GLOVEBOX_SOCKET": daemon.path, "GLOVEBOX_POLICIES": ""}

    def run(policy, *options):
        done = daemon.glovebox("run", "--policy", policy, "--receipt", receipt, *options, script, env=environment)
        assert receipt.read_text(), done.stderr

    def replay(*options):
        done = daemon.glovebox("replay", receipt, "--daemon", daemon.path, "--code", script, *options)
        return done.returncode, done.stdout.decode() + done.stderr.decode()

    def replayed(*options):
        status, told = replay("--json", *options)
        told = json.loads(told)
        return status, told["verdict"], [row["what"] for row in told["differences"]]
    run("holds")
    status, told = replay()
    assert status == 125 and "was withheld" in told, told
    run("tells", "--expect", wish)
    assert replayed("--expect", wish) == (0, "compared", [])
    assert "was compared with what was expected" in replay("--expect", wish)[1]
    assert replayed() == (0, "not compared", ["expectation"])
    status, told = replay()
    assert status == 0 and "verdicts on the output are not compared" in told and "--expect FILE" in told, told
    assert replayed("--expect", other) == (0, "not compared", ["expectation"])
    run("tells")
    assert replayed() == (0, "compared", []), "what the policy expects is there by itself"
    run("minimal")
    assert replayed() == (0, None, [])
    status, told = replay("--expect", wish)
    assert status == 125 and "knows of no expectation" in told, told
    script.write_text("import os; print(os.urandom(8).hex())\n")
    run("minimal", "--expect", wish)
    assert replayed("--expect", wish)[:2] == (1, "compared"), "the output differs, the verdict does not"

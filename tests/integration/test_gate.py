"""Output validation: the output of a run is compared with the expectation in a separate sandbox. The verdict is
`passed` only if glovebox's checker says so, whatever the output contains."""

import base64
import concurrent.futures
import hashlib
import json
import time

import failing_templates
import jsonschema
import pytest
import session_rig
from conftest import STATE, TOP, Glovebox
from serving import let_others_in

POLICY = "name: gated\nextends: minimal\ntemplate: minimal\nlanguages: [python, bash, node]\n" \
         "limits: {output: 12MiB, artifacts: 64MiB}\n"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """Its templates are minimal, and those in which every interpreter fails."""
    folder = tmp_path_factory.mktemp("g")
    glovebox = Glovebox(folder)
    glovebox.state = folder / "state"
    failing_templates.add_to(glovebox.state, STATE / "templates" / "minimal")
    (glovebox.state / "templates" / "minimal").symlink_to(STATE / "templates" / "minimal")
    policies = folder / "policies"
    policies.mkdir()
    (policies / "gated.yaml").write_text(POLICY)
    (policies / "minimal.yaml").write_text((TOP / "policies" / "minimal.yaml").read_text())
    started = session_rig.Daemon(glovebox, folder, policies=str(policies))
    started.glovebox = glovebox
    yield started
    started.stop()


def submit(daemon, code, expect, **request):
    given = {"code": code, "language": "python"} if code is not None else {}
    return daemon.call("POST", "/v1/runs", given | {"expect": expect, "policy": "gated"} | request)


def gate_of(daemon, code, expect, **request):
    status, result = submit(daemon, code, expect, **request)
    assert status == 200, result
    return result["gate"]


def all_gates(daemon, rows, **request):
    """Of many (code, expect, …), side by side."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda row: gate_of(daemon, row[0], row[1], **request), rows))


def test_an_output_that_is_as_expected_passes(daemon):
    code = ("import json, sys; open('plot.svg', 'w').write('<svg xmlns=\"x\"></svg>'); open('t.csv', 'w').write('a,b\\n1,2\\n')\n"
            "print(json.dumps({'mean': 1.5, 'rows': [1, 2, 3]})); print('words', file=sys.stderr)")
    expect = {"stdout": {"schema": {"type": "object", "required": ["mean"], "additionalProperties": False,
                                    "properties": {"mean": {"type": "number"}, "rows": {"items": {"type": "integer"}}}},
                         "max_bytes": 100},
              "artifacts": [{"name": "plot.svg", "type": "image/svg+xml"}, {"pattern": "*.csv", "type": "text/csv"},
                            {"pattern": "out/*.png", "required": False}],
              "others": "forbid", "secrets": "forbid"}
    status, result = submit(daemon, code, expect)
    assert status == 200 and result["status"] == "ok", result
    canonical = json.dumps(expect, sort_keys=True, separators=(",", ":")).encode()
    assert result["gate"] == {"verdict": "passed", "expectation": hashlib.sha256(canonical).hexdigest(), "findings": [],
                              "unlisted": 0, "failure": None, "took_ms": result["gate"]["took_ms"], "withheld": None}
    assert submit(daemon, "print(1)", None)[1]["gate"] is None


NUMBERS = {"stdout": {"schema": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}}}}
JSON = {"stdout": {"schema": True}}
NO_SECRETS = {"secrets": "forbid"}

# code, what is expected, and one finding of it: rule, where, path, line
FAILS = [
    ("print('{\"n\": -1}')", NUMBERS, ("schema", "stdout", None, 0)),
    ("print('no json')", NUMBERS, ("json", "stdout", None, 0)),
    ("pass", NUMBERS, ("json", "stdout", None, 0)),
    ("print(1); raise SystemExit(3)", {"stdout": {"schema": {"type": "string"}}}, ("schema", "stdout", None, 0)),
    ("print('{\"a\": NaN}')", JSON, ("json", "stdout", None, 0)),
    ("print('{\"a\": -Infinity}')", JSON, ("json", "stdout", None, 0)),
    ("print('1e999')", JSON, ("json", "stdout", None, 0)),
    ("print('9' * 5000)", JSON, ("json", "stdout", None, 0)),
    ("print('{\"a\": 1, \"a\": 2}')", JSON, ("json", "stdout", None, 0)),
    ("print('[1] [2]')", JSON, ("json", "stdout", None, 0)),
    ("print('[1,]')", JSON, ("json", "stdout", None, 0)),
    ("print(\"{'a': 1}\")", JSON, ("json", "stdout", None, 0)),
    ("import sys; sys.stdout.buffer.write(b'\"\\xff\\xfe\"')", JSON, ("json", "stdout", None, 0)),
    ("import sys; sys.stdout.buffer.write(b'\\xef\\xbb\\xbf1')", JSON, ("json", "stdout", None, 0)),
    ("print('[' * 201 + ']' * 201)", JSON, ("json", "stdout", None, 0)),
    ("print('[' * 100000 + ']' * 100000)", JSON, ("json", "stdout", None, 0)),
    ("print('{\"a\":' * 100000)", JSON, ("json", "stdout", None, 0)),
    ("print('x' * 100)", {"stdout": {"max_bytes": 100}}, ("too_large", "stdout", None, 0)),
    ("print('x')", {"stdout": {"min_bytes": 100}}, ("too_small", "stdout", None, 0)),
    ("print('\\x1b[0m')", {"stdout": {"type": "text/plain"}}, ("type", "stdout", None, 0)),
    ("print('a' * 13000000)", JSON, ("cut", "stdout", None, 0)),
    ("pass", {"artifacts": [{"name": "a.png"}]}, ("missing", "expected", "a.png", 0)),
    ("import os; os.mkdir('d'); open('d/a.png', 'w')", {"artifacts": [{"pattern": "*.png"}]}, ("missing", "expected", "*.png", 0)),
    ("open('b', 'w')", {"artifacts": [], "others": "forbid"}, ("unexpected", "artifact", "b", 0)),
    ("open('a', 'w').write('x')", {"artifacts": [{"name": "a", "min_bytes": 2}]}, ("too_small", "artifact", "a", 0)),
    ("open('a', 'w').write('xx')", {"artifacts": [{"name": "a", "max_bytes": 1}]}, ("too_large", "artifact", "a", 0)),
    ("open('a.png', 'w').write('text')", {"artifacts": [{"name": "a.png", "type": "image/png"}]}, ("type", "artifact", "a.png", 0)),
    ("open('a', 'w').write('{}')", {"artifacts": [{"name": "a", "schema": {"minProperties": 1}}]}, ("schema", "artifact", "a", 0)),
    ("print('AKIA' + 'ABCDEFGHIJKLMNOP')", NO_SECRETS, ("secret", "stdout", None, 1)),
    ("import sys; sys.stderr.write('\\n\\nAKIA' + 'ABCDEFGHIJKLMNOP')", NO_SECRETS, ("secret", "stderr", None, 3)),
    ("open('a', 'w').write('x\\nAKIA' + 'ABCDEFGHIJKLMNOP')", NO_SECRETS, ("secret", "artifact", "a", 2)),
    ("open('AKIA' + 'ABCDEFGHIJKLMNOP', 'w')", NO_SECRETS, ("secret", "artifacts", None, 0)),
    ("import os; os.mkfifo('AKIA' + 'ABCDEFGHIJKLMNOP')", NO_SECRETS, ("secret", "artifacts", None, 0)),
]


def test_each_way_not_to_be_as_expected_fails(daemon):
    for (code, expect, wanted), gate in zip(FAILS, all_gates(daemon, FAILS)):
        assert gate["verdict"] == "failed" and gate["failure"] is None, (code, gate)
        found = [(row["rule"], row["where"], row["path"], row["line"]) for row in gate["findings"]]
        assert wanted in found and len(found) == 1, (code, gate)


# Code that plays our interpreter: AGENT_RESULT of contract/agent.h is 76. All of them are shown as the value.
TWO_VALUES = """import json, os, struct
for text in ({0!r}, {1!r}):
    body = json.dumps({{"data": {{"text/plain": text}}}}).encode()
    os.write(63, struct.pack("<IHHIIHHI", 8 + len(body), 76, 0, 16, 0, 1, 1, 0) + body) and None"""

CELLS = [
    ("{'a': [1, 2]}", {"type": "object", "required": ["a"]}, "passed", None),
    ("41 + 1", {"const": 42}, "passed", None),
    ("[1, 2]", {"type": "object"}, "failed", "schema"),
    ("'text'", {"type": "string"}, "passed", None),
    ("object", True, "failed", "json"),
    ("None", True, "failed", "missing"),
    ("1/0", True, "failed", "missing"),
    (TWO_VALUES.format("5", "6"), {"type": "integer"}, "passed", None),
    (TWO_VALUES.format("5", "'no number'"), {"type": "integer"}, "failed", "json"),
    (TWO_VALUES.format("[]", "5"), {"type": "integer"}, "failed", "schema"),
]


def test_the_value_of_a_cell(daemon):
    gates = all_gates(daemon, [(code, {"result": {"schema": schema}}) for code, schema, *_ in CELLS], mode="cell")
    for (code, _, verdict, rule), gate in zip(CELLS, gates):
        assert gate["verdict"] == verdict, (code, gate)
        assert [row["rule"] for row in gate["findings"]] == ([rule] if rule else []), (code, gate)
    secret = "{'k': 'AKIA' + 'ABCDEFGHIJKLMNOP', 'text': 'a\\nghp_' + 'a1' * 18}"
    assert {row["detail"] for row in gate_of(daemon, secret, NO_SECRETS, mode="cell")["findings"]} == {
        "aws_access_key", "github_token"}
    raised = gate_of(daemon, "raise ValueError('AKIA' + 'ABCDEFGHIJKLMNOP')", NO_SECRETS, mode="cell")
    assert ("secret", "error") in {(row["rule"], row["where"]) for row in raised["findings"]}, raised


def test_cells_of_a_session_are_compared(daemon):
    session = daemon.session(policy="gated")

    def run(code, expect):
        return session.call("POST", "/contexts/python/run", {"code": code, "expect": expect})
    try:
        status, result = run("x = {'a': 1}\nx", {"result": {"schema": {"required": ["a"]}}} | NO_SECRETS)
        assert status == 200 and result["gate"]["verdict"] == "passed", result
        assert gate_in_receipt(daemon, result)["verdict"] == "passed"
        status, result = run("print('AKIA' + 'ABCDEFGHIJKLMNOP'); x['a']", {"result": {"schema": {"const": 2}}} | NO_SECRETS)
        assert [row["rule"] for row in result["gate"]["findings"]] == ["schema", "secret"] and result["status"] == "ok"
        assert run("x", {"others": "forbid"})[0] == 400 and run("x", {"artifacts": []})[0] == 400
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            gates = [result["gate"]["verdict"] for _, result in pool.map(lambda n: run(f"x['a'] + {n}", NO_SECRETS), range(8))]
        assert gates == ["passed"] * 8
        assert run("x", None)[1]["gate"] is None
    finally:
        session.call("DELETE")


def test_cells_on_the_command_line(daemon, tmp_path):
    session = daemon.session(policy="gated")
    wishes = {"value": {"result": {"schema": {"type": "integer"}}}, "files": {"others": "forbid"}, "list": []}
    for name, wish in wishes.items():
        (tmp_path / name).write_text(json.dumps(wish))

    def run(code, *options):
        done = daemon.glovebox("session", "run", "--daemon", daemon.path, *options, session.answer["id"], "-c", code)
        return done.returncode, done.stdout.decode(), done.stderr.decode()
    try:
        assert run("x = 6\nx", "--expect", tmp_path / "value") == (0, "6\n", "")
        status, out, said = run("print('x'); 'six'", "--expect", tmp_path / "value")
        assert (status, out) == (65, "x\n'six'\n") and said.startswith("glovebox: the output is not what was expected"), said
        assert run("raise SystemExit(3)", "--expect", tmp_path / "value")[0] != 65, "its own end comes first"
        told = json.loads(run("x", "--json", "--expect", tmp_path / "value")[1])
        assert told["gate"]["verdict"] == "passed", told
        for name, words in (("files", "has no artifacts"), ("list", "no JSON object"), ("nowhere", "cannot read")):
            status, out, said = run("x", "--expect", tmp_path / name)
            assert status not in (0, 65) and out == "" and words in said, (name, status, said)
        done = daemon.glovebox("session", "exec", "--daemon", daemon.path, "--expect", tmp_path / "value", session.answer["id"], "--", "true")
        assert done.returncode and b"takes no --expect" in done.stderr, done.stderr
    finally:
        session.call("DELETE")


def gate_in_receipt(daemon, result):
    return payload_of(daemon.call("GET", f"/v1/receipts/{result['receipt']}")[1])["predicate"]["gate"]


# What cannot be found out is an error, and no pass.
ERRORS = [
    ("print('\"' + 'a' * 60 + '!\"')", {"stdout": {"schema": {"pattern": "^(a+)+$"}}}, "limit: "),  # of the processor, or of the clock where others want it
    ("print(1)", {"stdout": {"schema": {"$ref": "#"}}}, "refers to itself without end"),
    ("print(1)", {"stdout": {"schema": {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
                                        "$ref": "#/$defs/a"}}}, "refers to itself without end"),
    ("print(1)", {"stdout": {"schema": {"$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 4} for n in range(20)}
                                        | {"d20": True}, "$ref": "#/$defs/d0"}}}, "steps of work"),
    ("print('\"x\"')", {"stdout": {"schema": {"pattern": "[z-a]"}}}, "a pattern of the schema cannot be read"),
    ("open('a', 'wb').write(bytes(33 << 20))", NO_SECRETS, "can be checked"),
]


def test_an_output_that_cannot_be_compared_does_not_pass(daemon):
    for (code, expect, why), gate in zip(ERRORS, all_gates(daemon, ERRORS)):
        assert gate["verdict"] == "error" and gate["findings"] == [] and why in gate["failure"], (code, gate)


def test_ten_megabytes_of_json_have_an_answer(daemon):
    code = "import sys; sys.stdout.write('[' + '\"' + 'x' * 10000000 + '\", 1]')"
    schema = {"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}
    assert gate_of(daemon, code, {"stdout": {"schema": schema}} | NO_SECRETS)["verdict"] == "passed"
    code = "import sys; sys.stdout.write('[' + '1,' * 1100000 + '1]')"
    gate = gate_of(daemon, code, {"stdout": {"schema": {"items": {"type": "integer"}}}})
    assert gate["verdict"] == "error" and "steps of work" in gate["failure"], gate


@pytest.mark.parametrize("way", [way for way in failing_templates.WAYS if way != "hangs"])
def test_a_checker_that_fails_is_no_pass(daemon, way):
    """The code is shell, which works there; what compares is Python, which does not."""
    let_others_in(daemon.glovebox.state)
    status, result = submit(daemon, None, NO_SECRETS, template=way, command=["/bin/echo", "hi"])
    assert status == 200 and result["status"] == "ok" and result["stdout"] == "hi\n", result["error"]
    assert result["gate"]["verdict"] == "error" and "the checker" in result["gate"]["failure"], result["gate"]


def test_what_a_limit_ended_is_compared_as_it_is(daemon):
    status, result = submit(daemon, "import time; print('{\"so\":', flush=True); time.sleep(60)", JSON,
                            limits={"wall_ms": 300})
    assert status == 200 and result["status"] == "limit" and result["gate"]["verdict"] == "failed", result


# Refused before anything runs, with the place.
REFUSED = [
    ({}, "must be an object with"),
    ([], "must be an object with"),
    ({"stdin": {}}, "expect.stdin"),
    ({"stdout": {}}, "expects nothing"),
    ({"stdout": {"name": "x"}}, "expect.stdout.name"),
    ({"result": {"type": "image/png"}}, "expect.result.type"),
    ({"result": {"schema": True}}, "cell"),
    ({"stdout": {"type": "image/tiff"}}, "image/tiff"),
    ({"stdout": {"min_bytes": 2, "max_bytes": 1}}, "above"),
    ({"stdout": {"max_bytes": -1}}, "max_bytes"),
    ({"stdout": {"max_bytes": 1.5}}, "max_bytes"),
    ({"artifacts": [{"type": "text/csv"}]}, "expect.artifacts[0]"),
    ({"artifacts": [{"name": "a", "pattern": "b"}]}, "one of them"),
    ({"artifacts": [{"name": "/etc/passwd"}]}, "beneath /workspace"),
    ({"artifacts": [{"pattern": "**/a"}]}, "* and ?"),
    ({"artifacts": [{"name": "a"}] * 65}, "up to 64"),
    ({"others": True}, "allow"),
    ({"secrets": "no"}, "allow"),
    ({"stdout": {"schema": {"format": "date"}}}, "expect.stdout.schema/format"),
    ({"stdout": {"schema": {"properties": {"a": {"unevaluatedItems": False}}}}}, "schema/properties/a/unevaluatedItems"),
    ({"stdout": {"schema": {"$dynamicRef": "#a"}}}, "not understood"),
    ({"stdout": {"schema": {"$id": "http://x"}}}, "not understood"),
    ({"stdout": {"schema": {"definitions": {}}}}, "not understood"),
    ({"stdout": {"schema": {"$schema": "http://json-schema.org/draft-07/schema#"}}}, "2020-12"),
    ({"stdout": {"schema": {"$ref": "http://x/schema.json"}}}, "nothing is fetched"),
    ({"stdout": {"schema": {"$ref": "#/$defs/none"}}}, "not in the $defs"),
    ({"stdout": {"schema": {"items": {"$defs": {}}}}}, "at its top"),
    ({"stdout": {"schema": {"items": [{}]}}}, "must be a schema"),
    ({"stdout": {"schema": {"type": "float"}}}, "schema/type"),
    ({"stdout": {"schema": {"minimum": "1"}}}, "schema/minimum"),
    ({"stdout": {"schema": {"enum": [12345678901234567890]}}}, "2^53"),
    ({"stdout": {"schema": {"pattern": "(?=a)"}}}, "at byte"),
    ({"stdout": {"schema": {"pattern": "(a)\\1"}}}, "at byte"),
    ({"stdout": {"schema": {"patternProperties": {"(": True}}}}, "at byte"),
    ({"stdout": {"schema": {"multipleOf": 0}}}, "above 0"),
]


def test_an_expectation_that_would_be_ignored_is_refused(daemon):
    for expect, words in REFUSED:
        status, answer = submit(daemon, "open('/workspace/ran', 'w')", expect)
        assert status == 400 and words in answer["error"]["message"], (expect, answer)
    deep = {}
    for _ in range(31):
        deep = {"not": deep}
    status, answer = submit(daemon, "1", {"stdout": {"schema": deep}})
    assert status == 200
    status, answer = submit(daemon, "1", {"stdout": {"schema": {"not": {"not": deep}}}})
    assert status == 400 and "nested deeper" in answer["error"]["message"]
    assert submit(daemon, "1", NO_SECRETS, check_only=True)[0] == 400


def test_a_secret_is_found_and_never_printed(daemon):
    secret = "ghp_" + "Zq3" * 12
    code = f"import sys; print('token: {secret}'); open('a.txt', 'w').write('{secret}'); sys.exit(1)"
    status, result = submit(daemon, "x = 1\n" + code, NO_SECRETS | {"stdout": {"schema": {"const": secret}}})
    assert status == 200 and result["gate"]["verdict"] == "failed" and secret in result["stdout"]
    assert {(row["rule"], row["where"]) for row in result["gate"]["findings"]} == {
        ("json", "stdout"), ("secret", "stdout"), ("secret", "artifact")}
    assert secret not in json.dumps(result["gate"])
    status, envelope = daemon.call("GET", f"/v1/receipts/{result['receipt']}")
    payload = payload_of(envelope)
    said = payload["predicate"]["gate"]
    assert said["verdict"] == "failed" and said["expectation"] == result["gate"]["expectation"]
    assert {"line": 1, "rule": "secret", "where": "artifact"} in said["findings"]
    jsonschema.validate(payload, json.loads((TOP / "docs/reference/receipt.schema.json").read_text()))
    kept = b"".join(path.read_bytes() for path in (daemon.glovebox.state / "log").rglob("*") if path.is_file())
    kept += (daemon.folder / "log").read_bytes()
    assert result["receipt"].encode() in kept or len(kept) > 0
    assert secret.encode() not in kept


def payload_of(envelope):
    return json.loads(base64.b64decode(envelope["payload"]))


def test_findings_reveal_no_names_of_the_output(daemon):
    code = "import json; print(json.dumps({'AKIA' + 'ABCDEFGHIJKLMNOP': [{'n': 'x'}], 'n': [1, 'y']}))"
    expect = {"stdout": {"schema": {"additionalProperties": {"items": {"type": "number"}}, "properties": {"n": True}}}}
    gate = gate_of(daemon, code, expect)
    assert [row["detail"] for row in gate["findings"]] == ["/*/0: type"], gate


def test_a_receipt_with_a_verdict_verifies(daemon):
    receipt = daemon.folder / "r.json"
    status, result = submit(daemon, "print(7)", {"stdout": {"schema": {"const": 7}}})
    receipt.write_bytes(daemon.open("GET", f"/v1/receipts/{result['receipt']}").read())
    done = daemon.glovebox("receipt", "verify", receipt)
    assert done.returncode == 0, done.stderr
    assert b"passed" in daemon.glovebox("receipt", "show", receipt).stdout
    assert daemon.glovebox("log", "verify").returncode == 0


def test_the_command_line_compares_too(daemon, tmp_path):
    expect, receipt = tmp_path / "e.json", tmp_path / "r.json"

    def run(text, code, *more):
        let_others_in(daemon.glovebox.state)  # another pytest that begins closes the folder of all of them
        expect.write_text(text)
        return daemon.glovebox.run("--policy", "minimal", "--expect", expect, "--receipt", receipt, *more, "-c", code)

    done = run('{"stdout": {"schema": {"type": "integer"}}}\n', "print(42)", "--verbose")
    assert done.returncode == 0 and done.stdout == b"42\n" and b"the output is what was expected\n" in done.stderr
    assert payload_of(json.loads(receipt.read_text()))["predicate"]["gate"]["verdict"] == "passed"
    done = run('{"stdout": {"schema": {"type": "integer"}}, "artifacts": [{"name": "a"}]}', "print('six')")
    assert done.returncode == 65 and done.stdout == b"six\n"
    assert done.stderr == (b"glovebox: the output is not what was expected: stdout is not JSON as RFC 8259 has it: line 1, column 1 "
                           b"(and 1 more; --json lists them)\n")
    assert run('{"secrets": "forbid"}', "print('AKIA' + 'ABCDEFGHIJKLMNOP')").stderr.count(b"\n") == 1
    done = run('{"stdout": {"schema": {"$ref": "#"}}}', "print(1)")
    assert done.returncode == 65 and b"could not be found out: the schema refers to itself" in done.stderr
    assert run('{"stdout": {"schema": false}}', "raise SystemExit(3)").returncode == 3
    assert json.loads(run('{"stdout": {"schema": false}}', "1", "--json").stdout)["gate"]["verdict"] == "failed"
    for text, says in [("", "no JSON text"), ("{", "no JSON object"), ("[]", "no JSON object"), ("{} {}", "no JSON object"), ("{}}", "no JSON object"),
                       ("{}", "must be an object with"), ('{"stdout": {"schema": {"formt": 1}}}', "schema/formt"), ("{'a': 1}", "single quote"),
                       ('{"a": 1}, "policy": "extended"', "no JSON object"), ("{}\0", "no JSON text"), ('{"secrets": "f\xc3"}', "UTF-8")]:
        expect.write_bytes(text.encode("latin-1"))
        done = daemon.glovebox.run("--policy", "minimal", "--expect", expect, "-c", "print(1)")
        assert done.returncode == 125 and says in done.stderr.decode() and done.stderr.count(b"\n") == 1, (text, done.stderr)
    done = daemon.glovebox.run("--policy", "minimal", "--expect", tmp_path / "none", "-c", "print(1)")
    assert done.returncode == 125 and b"--expect" in done.stderr and done.stdout == b""
    expect.write_text('{"stdout": {"min_bytes": 3}}')
    done = daemon.glovebox("exec", "--private", "--policy", "minimal", "--expect", expect, "--", "echo", "a")
    assert done.returncode == 65 and b"smaller" in done.stderr
    expect.write_text('{"stdout": {"min_bytes": 2}}')
    done = daemon.glovebox("run", "--daemon", daemon.path, "--policy", "minimal", "--expect", expect, "-c", "print(1)")
    assert done.returncode == 0 and done.stdout == b"1\n"


def test_one_at_a_time_does_not_wait_for_itself(daemon):
    """More at once than there are sandboxes: a run that is compared holds none meanwhile."""
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        gates = list(pool.map(lambda n: gate_of(daemon, f"print({n})", NUMBERS | NO_SECRETS), range(24)))
    assert {gate["verdict"] for gate in gates} == {"failed"}
    daemon.idle()


SLOW = {"stdout": {"schema": {"pattern": "^(a+)+$"}}}
FOR_SLOW = "print('\"' + 'a' * 60 + '!\"')"


def cancel_at_gate(daemon, ask):
    """`ask` begins what takes long to compare, and gives (status, result)."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(ask)
        end = time.monotonic() + 30 # the first sandbox of a template may have to wait for its zygote
        rows = []
        while not rows and time.monotonic() < end:
            answer = daemon.call("GET", "/v1/runs?status=gating")[1]
            assert "runs" in answer, answer
            rows = answer["runs"]
        assert rows, "it was never at the gate"
        daemon.call("DELETE", f"/v1/runs/{rows[0]['id']}")
        status, result = future.result()
    assert result["status"] == "cancelled" and result["gate"]["verdict"] == "error", result
    assert "cancelled" in result["gate"]["failure"] and result["receipt"]
    return result


def test_a_run_that_is_cancelled_at_the_gate_leaves_nothing(daemon):
    cancel_at_gate(daemon, lambda: submit(daemon, FOR_SLOW, SLOW))
    daemon.idle()


def test_a_cell_that_is_cancelled_at_the_gate_leaves_its_context_as_it_is(daemon):
    session = daemon.session(policy="gated")

    def run(code, **request):
        return session.call("POST", "/contexts/python/run", {"code": code} | request)
    try:
        assert cancel_at_gate(daemon, lambda: run("x = 5\n" + FOR_SLOW, expect=SLOW))["exit_code"] == 0
        assert run("x + 1")[1]["results"][0]["data"]["text/plain"] == "6"
    finally:
        session.call("DELETE")
    daemon.idle()

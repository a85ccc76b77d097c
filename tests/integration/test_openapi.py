"""The OpenAPI document against the daemon that serves it: every route is asked with the example that the document
gives, and every answer is held against the schema of its route and status; then every field of every body is asked for
with what the document says is wrong."""

import contextlib
import io
import json
import re
import tarfile
import time

import pytest
from conftest import TOP, Glovebox
from described import MOMENT, Description, other_moments
from serving import Serving, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")

OPEN = {"NetworkWish", "PolicyValues"}  # may have keys that the document does not list
S = "/v1/sessions/{id}"
EVERY = "run,sessions,approve,audit,admin"


class Asked:
    """A daemon, its document, and what is there to be asked for."""

    def __init__(self, serving):
        self.serving = serving
        self.description = Description(serving.call("GET", "/openapi.json").json)
        self.wrong = []
        self.have = {}

    def example(self, method, path):
        _, schema = self.description.request_schema(self.description.document["paths"][path][method.lower()])
        return schema["examples"][0]

    def place(self, path):
        for name, value in self.have.items():
            path = path.replace(f"{name}/{{id}}", f"{name}/{value}") if name.startswith("/") else path.replace(name, value)
        return path

    def ask(self, method, path, body=None, query="", **how):
        """The answer; what the document says otherwise is kept in `wrong`."""
        place = self.place(path) + query
        answer = self.serving.call(method, place, body, **how)
        self.wrong += self.description.check(method, place, answer)
        kind = answer.headers["Content-Type"] or ""
        said = [answer.json] if kind == "application/json" else \
            [json.loads(line[6:]) for line in answer.body.decode().splitlines() if line.startswith("data: ")] if "event-stream" in kind else []
        self.wrong += [f"{method} {place} answers with {each}" for each in other_moments(said)]
        return answer

    def good(self, method, path, body=None, **how):
        answer = self.ask(method, path, self.example(method, path) if body == "example" else body, **how)
        assert answer.status < 300, (method, path, answer.body)
        return answer.json if answer.headers["Content-Type"] == "application/json" else answer.body


@pytest.fixture(name="asked", scope="module")
def asked_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("o"))
    state_of_its_own(glovebox)
    policies = glovebox.folder / "policies"
    policies.mkdir()
    policies.chmod(0o755)
    (policies / "asked.yaml").write_text("name: asked\nextends: minimal\napproval: {when: [always]}\n"
                                         "sessions: {max: 50}\nprecheck: {}\n")
    with Serving(glovebox, slots=16, env={"GLOVEBOX_POLICIES": f"{policies}:{TOP / 'policies'}"}) as serving:
        yield Asked(serving)


@pytest.fixture(name="session")
def session_(asked):
    """What the paths of a session need; `have` knows it until the test ends."""
    key = asked.serving.key("--tenant", "t", "--scope", EVERY)
    asked.wrong = []
    asked.have = {"/v1/sessions": asked.good("POST", "/v1/sessions", "example")["id"], "{path}": "data.csv"}
    asked.good("PUT", S + "/files/{path}", b"a,b\n1,2\n")
    asked.good("POST", S + "/contexts", "example")  # named by its number
    asked.good("POST", S + "/contexts/{context}/run".replace("{context}", "python"), {"code": "x = 1"})
    asked.have["{context}"] = "python"
    asked.have["{process}"] = asked.good("POST", S + "/processes", "example")["id"]
    asked.have["{checkpoint}"] = asked.good("POST", S + "/checkpoints", "example")["id"]
    asked.have["/v1/approvals"] = asked.serving.run("1", policy="asked", key=key).json["approval"]
    yield key
    asked.have = {"/v1/sessions": asked.have["/v1/sessions"]}
    with contextlib.suppress(AssertionError):
        asked.good("DELETE", S)


def archive():
    """A file, and what is not unpacked."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind in (("one.txt", tarfile.REGTYPE), ("pipe", tarfile.FIFOTYPE)):
            member = tarfile.TarInfo(name)
            member.type = kind
            tar.addfile(member, io.BytesIO(b""))
    return out.getvalue()


def without_doubles(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"a key stands twice: {sorted(keys)}"
    return dict(pairs)


def references(thing):
    if isinstance(thing, dict):
        yield from [thing["$ref"]] if isinstance(thing.get("$ref"), str) else []
        for each in thing.values():
            yield from references(each)
    elif isinstance(thing, list):
        for each in thing:
            yield from references(each)


def test_the_document_is_what_generators_and_linters_take(asked):
    """What openapi-typescript, openapi-python-client, Spectral and Redocly refuse or warn of."""
    document = json.loads(asked.serving.call("GET", "/openapi.json").body, object_pairs_hook=without_doubles)
    assert document["servers"] and document["info"]["license"] and document["info"]["contact"]
    for reference in set(references(document)):
        assert asked.description.resolve({"$ref": reference}), reference
    tags = {tag["name"] for tag in document["tags"] if tag["description"]}
    names = []
    for method, path, operation in asked.description.operations():
        where = f"{method} {path}"
        names.append(operation["operationId"])
        assert re.fullmatch(r"[a-z]+([A-Z][a-z]+)+", names[-1]), where
        assert len(operation["summary"]) < 100 and operation["description"].startswith(operation["summary"]), where
        assert "null" not in operation["description"] and set(operation["tags"]) <= tags, where
        assert all(each["description"] for each in operation["parameters"]), where
        assert {each["name"] for each in operation["parameters"] if each["in"] == "path"} == set(re.findall(r"\{(\w+)\}", path)), where
        assert any(400 <= int(status) < 500 for status in operation["responses"]), where
        for status, answer in operation["responses"].items():
            answer = asked.description.resolve(answer)
            assert answer["description"] and answer["content"], (where, status)
            if "*/*" in answer["content"]:  # which generators do not know
                assert "application/octet-stream" in answer["content"], (where, status)
    assert len(names) == len(set(names)) > 60
    for schema in document["components"]["schemas"].values():
        for field in schema.get("properties", {}).values():
            assert len(field.get("anyOf", "..")) > 1, "one choice is none: a $ref alone says it"


def test_every_body_of_json_has_a_schema(asked):
    description = asked.description
    for method, path, operation in description.operations():
        for where, content in [("request", operation.get("requestBody", {}).get("content", {}))] + \
                [(status, description.resolve(answer)["content"]) for status, answer in operation["responses"].items()]:
            schema = content.get("application/json", {}).get("schema")
            assert schema is None or schema.get("$ref", "").startswith("#/components/schemas/"), \
                f"{method} {path} has no schema for its {where}: name one in its row, and describe it in schemas*.c"
    for name, schema in description.schemas.items():
        assert schema["description"] and ("anyOf" in schema or schema["properties"] or name == "RollbackRequest"), name
        assert "anyOf" in schema or schema["additionalProperties"] is (name in OPEN), name


# Fields whose names say that they are a length of time.
LENGTHS = {"age_ms", "cpu_ms", "cpu_ms_today", "cpu_seconds_per_day", "idle_ms", "idle_seconds", "queued_ms", "timeout_ms", "took_ms", "ttl_seconds",
           "until_seconds", "wall_ms", "expires_seconds",
           "ApprovalValues expires_ms"}  # is in what a policy's digest is of
UNIT = re.compile(r"(^|_)(ms|us|ns|s|seconds|minutes|hours|days|time|timestamp|date|epoch)(_|$)")
POINT = re.compile(r"(^|_)(created|started|begun|began|ended|expires|modified|updated|asked|decided|since|until|at)$")
NO_POINTS = {"Session ended", "LimitAsked asked"}  # an object with `ended_at`; what limit was asked for
# Parameters that are a point in time in another form.
SIGNED = {"readSignedFile expires", "writeSignedFile expires"}  # the signature of the URL covers the text as it is


def test_points_in_time_have_one_form(asked):
    """A text of RFC 3339 in UTC with milliseconds, named `…_at`; what is a length of time has its unit in its name."""
    fields = [(name, field, schema) for name, each in asked.description.schemas.items() for field, schema in each.get("properties", {}).items()]
    parameters = [(operation["operationId"], each["name"], each) for *_, operation in asked.description.operations()
                  for each in operation["parameters"]]
    moments, wrong, unused = 0, [], LENGTHS | NO_POINTS | SIGNED
    for owner, field, schema in fields + parameters:
        kind = schema.get("schema", schema)
        is_moment = kind.get("format") == "date-time"
        is_known = {field, f"{owner} {field}"} & (LENGTHS | NO_POINTS | SIGNED)
        unused -= is_known
        moments += is_moment
        looks_so = UNIT.search(field) or POINT.search(field) or re.search(r"since 1970|epoch|3339|8601|UTC", schema.get("description", ""))
        if is_moment != field.endswith("_at") or (is_moment and kind.get("pattern") != f"^{MOMENT}$") or (looks_so and not is_moment and not is_known):
            wrong.append(f"{owner} {field}: {schema}")
    assert not wrong and not unused
    assert moments >= 18


def test_other_forms_of_points_in_time_are_found():
    now = time.time()
    for value in (int(now), int(now * 1000), "2026-11-22T03:00:00Z", "2026-11-22 03:00:00", "2026-11-22T04:00:00.000+01:00", "2026-11-22"):
        assert other_moments({"rows": [{"created_at": value}]}) and other_moments({"created": value})
    assert other_moments({"created": "2026-11-22T03:00:00.000Z"})
    assert not other_moments({"rows": [{"created_at": "2026-11-22T03:00:00.000Z"}, {"ended_at": None, "wall_ms": 1000, "is": True, "text": "at"}]})


def test_requests_have_examples_that_fit(asked):
    requests = [description for *_, operation in asked.description.operations()
                if (description := asked.description.request_schema(operation))]
    assert len(requests) > 15
    for name, schema in requests:
        assert schema.get("examples"), f"{name} has no example"
    for name, schema in asked.description.schemas.items():
        for example in schema.get("examples", []):
            assert asked.description.complaints({"$ref": f"#/components/schemas/{name}"}, example) == [], name


def walk(asked, key):
    """Asks every route for something good."""
    good = asked.good
    files = good("POST", "/v1/runs", {"code": "open('o', 'w').write('x'); 1/0", "mode": "cell", "policy": "data"})
    run = good("POST", "/v1/runs", "example")
    asked.have |= {"/v1/runs": files["id"], "/v1/receipts": run["receipt"], "{sha256}": files["artifacts"][0]["sha256"]}
    good("POST", "/v1/runs", {"code": "while True: pass", "limits": {"wall_ms": 100}, "policy": "minimal",
                              "expect": {"stdout": {"min_bytes": 1}}})
    good("POST", "/v1/runs", {"code": "import socket; socket.create_connection(('192.0.2.1', 80))", "policy": "data"})
    good("POST", "/v1/runs", {"code": "import os; eval('1')", "check_only": True, "policy": "minimal"})
    late = good("POST", "/v1/runs", {"code": "1", "policy": "minimal"}, headers={"Prefer": "respond-async"})
    asked.ask("GET", f"/v1/runs/{late['id']}", query="?wait=30")
    for path in ("/v1/runs", "/v1/runs/{id}", "/v1/runs/{id}/events", "/v1/runs/{id}/artifacts.zip", "/v1/artifacts/{sha256}",
                 "/v1/sessions", S, S + "/contexts", S + "/checkpoints", S + "/files/{path}", S + "/files:tar", S + "/processes",
                 S + "/processes/{process}", S + "/ports:token", "/v1/policies", "/v1/templates", "/v1/limits", "/healthz", "/readyz",
                 "/openapi.json", "/metrics", "/v1/receipts", "/v1/receipts/{id}", "/v1/receipts/{id}/opening", "/v1/log/key", "/v1/log/checkpoint", "/v1/approvals",
                 "/v1/approvals/{id}", "/v1/network/rules"):
        good("GET", path)
    good("GET", "/v1/receipts/{id}", query="?proof=1")
    good("GET", "/v1/log/proof/inclusion", query="?index=0")
    good("GET", "/v1/log/proof/consistency", query="?from=1")
    good("GET", "/v1/network/connections", query="?follow=0")
    good("GET", "/v1/status")
    assert asked.ask("GET", S + "/files/{path}", headers={"Range": "bytes=0-1"}).status == 206
    assert asked.ask("GET", S + "/files/{path}", headers={"Range": "bytes=99-"}).status == 416
    cell = good("POST", S + "/contexts/{context}/run", {"code": "def f(): return 1/0\ntry: f()\nexcept Exception as e: raise ValueError from e"})
    assert asked.ask("GET", f"/v1/runs/{cell['id']}").status == 200
    good("POST", S + "/contexts/{context}/run", "example")
    good("POST", S + "/contexts/{context}/interrupt")
    for path in ("stat", "list", "sign", "mkdir", "move"):
        if path == "mkdir":
            good("POST", S + "/files:mkdir", {"path": "old"})
        good("POST", S + "/files:" + path, "example" if path != "mkdir" else {"path": "other"})
    good("POST", S + "/processes", {"shell": "cat", "stdin": True, "tag": "cat"})
    good("POST", S + "/processes/cat/stdin", {"data_base64": "AP8=", "close": True})
    good("GET", S + "/processes/cat/events")
    for path in ("stdin", "resize", "signal"):
        good("POST", S + f"/processes/{{process}}/{path}", "example")
    assert good("PUT", S + "/files:tar", archive())["skipped"]
    signed = good("POST", S + "/files:sign", {"path": "new.txt", "method": "PUT"})["url"]
    assert asked.ask("PUT", signed, b"x").status == 200
    signed = good("POST", S + "/files:sign", {"path": "new.txt"})["url"]
    assert asked.ask("GET", signed).status == 200
    asked.have["{path}"] = "new.txt"
    good("DELETE", S + "/files/{path}")
    good("PATCH", S, "example")
    good("POST", S + "/pause")
    good("POST", S + "/resume")
    branch = good("POST", S + "/branch", "example")["id"]
    good("POST", S + "/checkpoints/{checkpoint}/rollback")
    good("DELETE", S + "/checkpoints/{checkpoint}")
    good("POST", S + "/contexts/{context}/restart")
    good("DELETE", S + "/contexts/{context}")
    assert asked.ask("DELETE", f"/v1/sessions/{branch}").status == 200
    good("DELETE", S)
    good("GET", S)
    asked.ask("GET", "/v1/sessions", query="?state=all")
    good("GET", "/v1/runs/{id}")
    good("POST", "/v1/approvals/{id}:decide", "example")
    asked.have["/v1/approvals"] = asked.serving.run("2", policy="asked", key=key).json["approval"]
    good("POST", "/v1/approvals/{id}", {"decision": "deny"})
    asked.have["/v1/runs"] = late["id"]
    good("DELETE", "/v1/runs/{id}")


def test_every_answer_is_as_the_document_says(asked, session):
    walk(asked, session)
    assert not asked.wrong
    streams = {S + "/files:watch", S + "/processes/{process}/events", S + "/ports/{port}/{path}"}
    never = [(method, path) for method, path, operation in asked.description.operations() if path not in streams
             and not any((method, path, int(status)) in asked.description.seen for status in operation["responses"] if status < "300")]
    assert not never, "no test has seen a good answer of these"


def test_every_stream_begins_with_the_status_of_the_document(asked, session):
    asked.have["/v1/runs"] = asked.good("POST", "/v1/runs", "example")["id"]
    queries = {S + "/files:watch": "?path=/workspace"}
    asked_for, wrong = set(), []
    for method, path, operation in asked.description.operations():
        said = {status for status, answer in operation["responses"].items()
                if "text/event-stream" in asked.description.resolve(answer)["content"]}
        if not said or path.startswith("/mcp"):
            continue
        place = asked.place(path) + queries.get(path, "")
        body = None if method == "GET" else asked.example(method, path)
        answer = asked.serving.open(method, place, body, headers={"Accept": "text/event-stream"})
        if {str(answer.status)} != said or answer.headers["Content-Type"] != "text/event-stream":
            wrong.append((method, path, answer.status, answer.headers["Content-Type"], said))
        asked_for.add(path)
        answer.close()
    assert not wrong and len(asked_for) == 8, asked_for


def wrong_values(schema, resolve):
    """What this schema of a field forbids."""
    if "anyOf" in schema:
        inner = [resolve(each) for each in schema["anyOf"]]
        values = [{}] if all(each.get("type") != "object" or each.get("minProperties") for each in inner) else []
        values += ["AAA", ""] if any("enum" in each for each in inner) else []
        return values + ([True] if "count" not in str(schema) else [])
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not kinds:
        return []
    values = [] if "string" in kinds else ["x"]
    values += [5] if not {"integer", "number"} & set(kinds) else []
    values += ["AAA"] if "enum" in schema else []
    values += [""] if schema.get("minLength") else []
    values += [[]] if schema.get("minItems") else []
    values += [schema["minimum"] - 1] if "minimum" in schema else []
    values += ["x" * (schema["maxLength"] + 1)] if schema.get("maxLength", 1 << 30) < 100000 else []
    values += [schema["maximum"] + 1] if "maximum" in schema else []
    values += [next(text for text in ("$ $", "a\0b") if not re.search(schema["pattern"], text))] if "pattern" in schema else []
    values += [[[]] * (schema["maxItems"] + 1)] if "maxItems" in schema else []
    return values


def test_every_field_is_read_as_the_document_says(asked, session):
    """A key that is described is known, what it forbids is refused, and no other key is taken."""
    taken, count = [], 0
    for method, path, operation in asked.description.operations():
        request = asked.description.request_schema(operation)
        if not request:
            continue
        whole = request[1]["examples"][0]
        count += 1
        bare = asked.ask(method, path)
        if (bare.status == 400) != operation["requestBody"]["required"]:
            taken.append((method, path, "no body", bare.status, bare.body[:100]))
        for key, value in [("key_of_nobody", 1)] + [(key, value) for key, each in request[1]["properties"].items()
                                                     for value in wrong_values(each, asked.description.resolve)]:
            answer = asked.ask(method, path, whole | {key: value})
            count += 1
            said = ((answer.json or {}).get("error") or {}).get("message", "")
            is_unknown = "unknown" in said or "cannot be changed" in said
            if answer.status not in (400, 413, 422) or is_unknown != (key == "key_of_nobody"):
                taken.append((method, path, key, str(value)[:40], answer.status, said))
    assert not taken and not asked.wrong
    assert count > 100


def test_every_field_that_is_read_is_described(asked):
    described = {key for *_, operation in asked.description.operations() if (request := asked.description.request_schema(operation))
                 for key in request[1]["properties"]}
    described |= set(asked.description.schemas["RunRequest"]["properties"])
    read = {}
    for source in (TOP / "src/doors").rglob("*.c"):
        read |= dict.fromkeys(re.findall(r'\{ "(\w+)", FIELD_', source.read_text()), source.name)
    assert len(read) > 20 and {name: where for name, where in read.items() if name not in described} == {}


def test_what_is_not_there_is_answered_as_described(asked):
    asked.wrong = []
    asked.have = {}
    statuses = set()
    for method, path, operation in asked.description.operations():
        if "{" in path and "{port}" not in path:
            request = asked.description.request_schema(operation)
            body = request[1]["examples"][0] if request else b"" if "requestBody" in operation else None
            place = re.sub(r"\{\w+\}", "nothing", path)
            answer = asked.serving.call(method, place, body)
            asked.wrong += asked.description.check(method, place, answer)
            statuses.add(answer.status)
    assert not asked.wrong and statuses <= {400, 401, 404}


def test_a_query_that_is_not_described_is_refused(asked):
    """With the parameters that the document has, in every route but those that pass a query on or over."""
    taken = 0
    for method, path, operation in asked.description.operations():
        names = [each["name"] for each in operation.get("parameters", []) if each["in"] == "query"]
        answer = asked.serving.call(method, re.sub(r"\{\w+\}", "nothing", path) + "?" + "&".join(
            [*(f"{name}=1" for name in names if name != "keep"), "limti=1"]), b"" if "requestBody" in operation else None)
        if path.startswith("/v1/") and "{port}" not in path:
            says = f"{method.upper()} {path} takes no 'limti' in its query; it takes {', '.join(names) or 'none'}"
            wrong_word = answer.status == 400 and "does not exist; it is one of" in answer.json["error"]["message"]
            assert wrong_word or (answer.status, answer.json["error"]["message"]) == (400, says)
            taken += not wrong_word
        else:
            assert "limti" not in answer.body.decode(errors="replace"), path
    assert taken > 50

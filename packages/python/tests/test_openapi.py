"""The package against /openapi.json of the server: for each operation there is a call that sends it, and a row in CALLS
that makes the call in both flavours to a Peer, which records what is sent and answers with every field of the answer's
schema. What is not sent or not handed on stands in a table with its reason, and a row of a table that is not needed fails."""

import asyncio
import hashlib
import importlib.util
import inspect
import json
from urllib.parse import parse_qsl

import glovebox
import pytest
from conftest import TOP, Flavour
from glovebox._sync.client import Client
from glovebox.server import find
from peer import STREAM, Peer, events

pytestmark = pytest.mark.filterwarnings("ignore:jsonschema.RefResolver")
SPEC = importlib.util.spec_from_file_location("described", TOP / "tests/integration/described.py")
described = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(described)

BYTES = b"bytes \xff"
SHA256 = hashlib.sha256(BYTES).hexdigest()
NO_UTF8 = "n\udcff"
CUT = "the first stream of its events is cut"

# Operations that no call of the package sends.
NOT_CALLED = {
    "readSignedFile": "the URL of files.sign() is for programs that have neither package nor key",
    "writeSignedFile": "the URL of files.sign() is for programs that have neither package nor key",
    "getOpenApiDocument": "is for generators of clients",
    "updateApproval": "is another name of decideApproval",
}
# Query parameters and headers that no call sends, by operation; * stands for all that have one of the name.
NOT_SENT = {
    "* stream": "Accept: text/event-stream says the same",
    "* from": "a stream is resumed by GET /v1/runs/{id}/events",
    "followRun from": "Last-Event-ID says the same",
    "startProcess wait": "run() follows the events, so that output comes while the program runs",
    "getProcess wait": "connect() follows the events",
    "followProcess Last-Event-ID": "offset says the same",
    "followConnections Last-Event-ID": "a stream that breaks off is raised as ConnectionLost; `last` says where to begin",
    "runCell Prefer": "a cell belongs to its session: nothing could ask for it when the program has ended",
    "readArtifact Range": "an artifact is read whole, as it is compared with its hash",
    "readArtifact If-None-Match": "its name is the hash of its bytes: who has them need not ask",
}
# Fields of answers that no call hands on, by schema; * stands for all fields.
NOT_HANDED_ON = {
    "ContextRemoved *": "the caller named it",
    "FilePath *": "the caller named it",
    "FileListing path": "the caller named it",
    "FileListing path_base64": "the caller named it",
    "TarUnpacked path": "the caller named it",
    "TarUnpacked path_base64": "the caller named it",
    "FileEntry name": "is the last part of path",
    "SignedUrl method": "the caller said it",
    "SignedUrl expires_at": "the caller said for how long",
    "PortToken header": "get_url() names it",
    "RunState status": "a run that is under way has no result; runs() has its status",
    "RunState url": "is the path of the run that the caller named",
}


async def first(items):
    async for item in await items if inspect.isawaitable(items) else items:
        return item


async def watched(sandbox):
    return await first(await sandbox.files.watch_dir("a", recursive=True))


async def told(sandbox):
    handle = await sandbox.commands.run(CUT, background=True)
    return await handle.wait()


async def talk(sandbox):
    handle = await sandbox.commands.run("cat", background=True, stdin=True)
    await handle.send_stdin("a", close=True)
    await handle.send_stdin(b"\xff")
    await handle.resize(glovebox.PtySize(2, 3))
    await handle.kill("SIGTERM")
    return [handle.id, await handle.wait(), handle.receipt]


RUN = {"language": "python", "timeout": 1, "envs": {"A": "1"}, "limits": {"cpus": 1}, "policy": "p", "template": "t", "args": ["a"],
       "network": "none", "filename": "f.py", "check_only": False, "cold": True, "mode": "cell", "approval": "apr_1",
       "expect": {"secrets": "forbid"}}
ROWS = [{"path": "a", "content": "x", "read_only": True}]
ARTIFACT = glovebox.Artifact("a", len(BYTES), SHA256, "text/plain", "")

# What sends an operation: functions of the package and of the class Sandbox, of a Server, of a sandbox.
OF_PACKAGE = {
    "createRun": [lambda api: api.run("1", **RUN), lambda api: api.run(["ls"], files=ROWS, stdin="x"),
                  lambda api: api.run("1", files={"b": b"\xff"}, stdin=b"\xff"), lambda api: api.run("1", on_stdout=print)],
    "followRun": [lambda api: api.run(CUT, on_stdout=print)],
    "readArtifact": [lambda api: api.download(ARTIFACT)],
    "createSession": [lambda api: api.sandbox(
        template="t", timeout=9, metadata={"a": "b"}, envs={"A": "1"}, policy="p", idle_timeout=9, limits={"cpus": 1},
        network="none", cwd="/tmp")],
    "listSessions": [lambda api: api.list(metadata={"a": "b"}, state="all")],
    "getSession": [lambda api: api.connect("ses_1")],
}
OF_SERVER = {
    "createRun": [lambda server: server.start("1", "python")],
    "getRun": [lambda server: server.result("run_1", wait=3)],
    "followRun": [lambda server: server.follow("run_1", on_stdout=print)],
    "cancelRun": [lambda server: server.cancel("run_1")],
    "listRuns": [lambda server: server.runs("ok")],
    "readArtifacts": [lambda server: server.artifacts("run_1")],
    "getReceipt": [lambda server: server.receipt("rcp_1"), lambda server: server.receipt("rcp_1", proof=True)],
    "listReceipts": [lambda server: server.receipts(since=3)],
    "getReceiptOpening": [lambda server: server.opening("rcp_1")],
    "getLogKey": [lambda server: server.log_key()],
    "getLogCheckpoint": [lambda server: server.log_checkpoint()],
    "getInclusionProof": [lambda server: server.inclusion_proof(3, 9)],
    "getConsistencyProof": [lambda server: server.consistency_proof(3, 9)],
    "listApprovals": [lambda server: server.approvals("all", wait=1)],
    "getApproval": [lambda server: server.approval("apr_1", wait=1)],
    "decideApproval": [lambda server: server.decide("apr_1", "approve", scope="time", until_seconds=9, reason="r")],
    "listPolicies": [lambda server: server.policies()],
    "listTemplates": [lambda server: server.templates()],
    "listLimits": [lambda server: server.limits()],
    "getHealth": [lambda server: server.health()],
    "getReadiness": [lambda server: server.health(ready=True)],
    "getStatus": [lambda server: server.status()],
    "getMetrics": [lambda server: server.metrics()],
    "listNetworkRules": [lambda server: server.network_rules()],
    "followConnections": [lambda server: first(server.connections("run_1", last=3, follow=False, all=True))],
}
OF_SANDBOX = {
    "runCell": [lambda s: s.run_code("1", timeout=1, limits={"cpus": 1}, expect={"secrets": "forbid"}, approval="apr_1"),
                lambda s: s.run_code("1", on_stdout=print), lambda s: s.run_code("1", envs={"A": "1"})],
    "createContext": [lambda s: s.create_code_context("/tmp", "python", {"A": "1"})],
    "listContexts": [lambda s: s.list_code_contexts()],
    "removeContext": [lambda s: s.remove_code_context("other")],
    "restartContext": [lambda s: s.restart_code_context()],
    "interruptCell": [lambda s: s.interrupt()],
    "getSession": [lambda s: s.get_info(), lambda s: s.is_running()],
    "updateSession": [lambda s: s.update(timeout=1, idle_timeout=2, metadata={}), lambda s: s.set_timeout(3)],
    "pauseSession": [lambda s: s.pause(), lambda s: s.pause(keep="files")],
    "resumeSession": [lambda s: s.resume()],
    "branchSession": [lambda s: s.branch(context="python", checkpoint="c", metadata={"a": "b"}, timeout=1, idle_timeout=2)],
    "createCheckpoint": [lambda s: s.checkpoint("c", context="python")],
    "listCheckpoints": [lambda s: s.checkpoints()],
    "removeCheckpoint": [lambda s: s.remove_checkpoint("c")],
    "rollBackSession": [lambda s: s.rollback("c")],
    "endSession": [lambda s: s.kill()],
    "getPortToken": [lambda s: s.get_port_token()],
    **{f"{method.lower()}Port": [lambda s, method=method: s.request(80, method, "/x", body=BYTES)]
       for method in ("GET", "PUT", "POST", "DELETE", "PATCH")},
    "statFile": [lambda s: s.files.get_info("a"), lambda s: s.files.exists(NO_UTF8)],
    "listFiles": [lambda s: s.files.list("a", 2, limit=5), lambda s: s.files.list(NO_UTF8, limit=1)],
    "makeFolder": [lambda s: s.files.make_dir("new"), lambda s: s.files.make_dir("new" + NO_UTF8)],
    "moveFile": [lambda s: s.files.rename("a", "b"), lambda s: s.files.rename(NO_UTF8, NO_UTF8)],
    "signFileUrl": [lambda s: s.files.sign("a", "PUT", 60, 0o600), lambda s: s.files.sign(NO_UTF8)],
    "watchFiles": [watched],
    "readTar": [lambda s: first(s.files.download_dir("a"))],
    "writeTar": [lambda s: s.files.upload_dir(BYTES, "a")],
    "readFile": [lambda s: s.files.read("a/b"), lambda s: s.files.read_bytes(NO_UTF8, 1, 2)],
    "writeFile": [lambda s: s.files.write("a/b", "x", 0o600, overwrite=False)],
    "removeFile": [lambda s: s.files.remove("a")],
    "startProcess": [lambda s: s.commands.run("ls", envs={"A": "1"}, cwd="/tmp", tag="t", stdin="x", timeout=1),
                     lambda s: s.commands.run(["ls"]), lambda s: s.pty.create(glovebox.PtySize(2, 3))],
    "listProcesses": [lambda s: s.commands.list(), lambda s: s.commands.list(all=True)],
    "getProcess": [lambda s: s.commands.get_info(3)],
    "followProcess": [lambda s: s.commands.connect("prc_1"), told],
    "writeToProcess": [talk, lambda s: s.commands.send_stdin(3, "x")],
    "signalProcess": [lambda s: s.commands.kill(3)],
    "resizeTerminal": [lambda s: s.pty.resize(3, glovebox.PtySize(2, 3))],
}


# Keys that are looked for in an answer whose schema has none of the name.
MAY_LACK = {
    "RunResult cell": "an Execution is of a run or of a cell",
    "FileWritten type": "what has been written is a file",
    "FileWritten target": "an EntryInfo is of any file",
    "FileWritten target_type": "an EntryInfo is of any file",
}


class Tracked(dict):
    """An object of an answer: which of its fields the package reads. A copy reads all of them."""

    made = []

    def __init__(self, fields):
        super().__init__(fields)
        self.fields, self.read = frozenset(fields), set()
        self.made.append(self)

    def __iter__(self):  # with a method of its own here, dict() and ** take the keys one by one
        return iter(self.keys())

    def __getitem__(self, name):
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name, default=None):
        self.read.add(name)
        return super().get(name, default)

    def pop(self, name, *default):
        self.read.add(name)
        return super().pop(name, *default)


def reachable(value, found):
    """The objects of answers that what a call has returned holds whole."""
    if isinstance(value, Tracked):
        found.append(value)
    if isinstance(value, dict):
        inner = list(dict.values(value))
    elif isinstance(value, (list, tuple)):
        inner = list(value)
    else:
        inner = list(vars(value).values()) if isinstance(value, (glovebox.Execution, glovebox.Result)) else []
    for each in inner:
        reachable(each, found)
    return found


class Record:
    """All calls of one flavour: what was sent, and what of the answers was read or handed on."""

    def __init__(self, document):
        self.description = described.Description(document)
        self.operations = {operation["operationId"]: operation for _, _, operation in self.description.operations()}
        self.sent, self.wrong, self.misnamed, self.handed_on = {}, [], set(), set()
        self.schemas = {}  # names by the set of fields
        self.under_way = ""

    def value(self, schema, variant=0):
        """One of the schema, with every field."""
        schema = self.resolved(schema)
        if "anyOf" in schema:
            return self.value(schema["anyOf"][min(variant, len(schema["anyOf"]) - 1)])
        kind = schema.get("type", "string")
        kind = kind[0] if isinstance(kind, list) else kind
        if "enum" in schema:
            return schema["enum"][0]
        if kind == "object":
            return {name: self.value(each) for name, each in schema.get("properties", {}).items()} or {"text/plain": "x"}
        if kind == "array":
            return [self.value(schema["items"])]
        if schema.get("pattern") == "^[0-7]{3,4}$":
            return "644"
        if kind == "string":
            return {"date-time": "2026-01-02T03:04:05.006Z"}.get(schema.get("format"), "YQ==")
        return {"boolean": False}.get(kind, 0)

    def resolved(self, schema):
        """Without references; the schema of an object is known by its fields from then on."""
        if "$ref" in schema:
            name, schema = schema["$ref"].split("/")[-1], self.description.resolve(schema)
            if "properties" in schema:
                self.schemas.setdefault(frozenset(schema["properties"]), set()).add(name)
        return schema

    def handle(self, connection, request):
        head, _, body = request.partition(b"\r\n\r\n")
        first_line, *lines = head.decode().split("\r\n")
        method, target, _ = first_line.split(" ")
        path, _, query = target.partition("?")
        template = self.description.route(method, path)
        if template is None:
            self.wrong.append(f"{self.under_way}: {method} {path} is no route")
            return False
        operation = self.description.document["paths"][template][method.lower()]
        headers = dict(line.split(": ", 1) for line in lines)
        asked = dict(parse_qsl(query, keep_blank_values=True))
        content = json.JSONDecoder().decode(body.decode()) if headers.get("Content-Type") == "application/json" else None
        self.note(operation, asked, headers, content)
        self.answer(connection, operation, asked, headers, content)

    def note(self, operation, query, headers, content):
        name = operation["operationId"]
        usual = {"Host", "User-Agent", "Content-Type", "Content-Length", "Accept"}
        declared = {each["name"]: each["schema"].get("enum") for each in operation["parameters"] if each["in"] != "path"}
        self.wrong += [f"{name}: {each}={value}" for each, value in query.items() if value not in (declared.get(each) or [value])]
        parameters = set(query) | set(headers) - usual
        self.wrong += [f"{name}: {each} is not declared" for each in parameters - set(declared)]
        fields = set()
        described_as = self.description.request_schema(operation)
        if content is not None:
            self.wrong += [f"{name}: {each}" for each in self.description.complaints(described_as[1], content)]
            self.fields_of(described_as[1], content, fields)
        sent = self.sent.setdefault(name, set())
        sent |= parameters | fields

    def fields_of(self, schema, content, fields, before=""):
        """The fields of a request, and of the objects in it that the package itself writes."""
        for name, each in schema["properties"].items():
            if name in content:
                fields.add(f"body {before}{name}")
                each = self.description.resolve(each.get("items", each))
                inner = content[name][0] if isinstance(content[name], list) and content[name] else content[name]
                if each in [self.description.schemas[one] for one in ("RequestFile", "TerminalSize")]:
                    self.fields_of(each, inner, fields, f"{name}.")

    def answer(self, connection, operation, query, headers, content):
        name, status = operation["operationId"], min(operation["responses"])
        if name == "statFile" and "new" in self.under_way:
            return self.send(connection, 404, {"error": {"code": "not_found", "message": ""}})
        if "respond-async" in headers.get("Prefer", ""):
            return self.send(connection, 202, self.value({"$ref": "#/components/schemas/RunState"}))
        kinds = self.description.resolve(operation["responses"][status])["content"]
        if "application/json" not in kinds or "event-stream" in headers.get("Accept", ""):
            if "text/event-stream" in kinds:
                return self.stream(connection, name, content)
            return self.send(connection, int(status), BYTES if "text/plain" not in kinds else b"text")
        row = self.value(kinds["application/json"]["schema"], variant=1 if "proof" in query else 0)
        if "next_cursor" in row and "cursor" in query:
            row["next_cursor"] = None
        return self.send(connection, int(status), row)

    @staticmethod
    def send(connection, status, row):
        kind, body = ("octet-stream", row) if isinstance(row, bytes) else ("json", json.dumps(row).encode())
        connection.sendall(b"HTTP/1.1 %d X\r\nContent-Type: application/%b\r\nContent-Length: %d\r\n\r\n%b" % (
            status, kind.encode(), len(body), body))

    def stream(self, connection, name, content):
        run = self.value({"$ref": "#/components/schemas/" + ("CellResult" if name == "runCell" else "RunResult")})
        process = self.value({"$ref": "#/components/schemas/Process"})
        rows = [("started", {"id": "run_1"}), ("stdout", {"data": "x"}), ("end", run)]
        if "Process" in name:
            rows = [("started", process), ("stdout", {"data": "x"}), ("end", process)]
        elif name in ("watchFiles", "followConnections"):
            rows = [("write", {"path": "a"})]
        if content and CUT in content.values():
            rows.pop()
        connection.sendall(STREAM + events(*rows) + b"0\r\n\r\n")

    async def make(self, operation, number, call, target):
        del Tracked.made[:]
        self.under_way = f"{operation} {number}" + (" new" if operation == "makeFolder" else "")
        returned = call(target)
        returned = await returned if inspect.isawaitable(returned) else returned
        whole = {id(each) for each in reachable(returned, [])}
        for one in Tracked.made:
            for schema in self.schemas.get(one.fields, ()):
                self.misnamed |= {f"{schema} {each}" for each in one.read - one.fields}
                self.handed_on |= {f"{schema} {each}" for each in one.fields if each in one.read or id(one) in whole}
        if operation not in self.sent:
            self.wrong.append(f"{operation} is not sent by its call {number}")


async def all_calls(record, name, peer):
    api = Flavour(name, **peer.server)
    sandbox = await api.sandbox()
    for calls, target in ((OF_PACKAGE, api), (OF_SERVER, api.whole_server()), (OF_SANDBOX, sandbox)):
        for operation, rows in calls.items():
            for number, call in enumerate(rows):
                await record.make(operation, number, call, target)


@pytest.fixture(scope="module", params=["sync", "async"], name="record")
def record_(request, server):
    client = Client(lambda: find(socket=server.socket))
    record = Record(client.call("GET", "/openapi.json"))
    client.close()
    with pytest.MonkeyPatch.context() as patch, Peer(record.handle) as peer:
        decode = json.JSONDecoder(object_hook=Tracked).decode
        patch.setattr(json, "loads", lambda data: decode(data if isinstance(data, str) else bytes(data).decode()))
        asyncio.run(all_calls(record, request.param, peer))
    return record


def test_every_operation_is_called_or_its_absence_has_a_reason(record):
    called = {*OF_PACKAGE, *OF_SERVER, *OF_SANDBOX}
    assert called | set(NOT_CALLED) == set(record.operations) and not called & set(NOT_CALLED)
    assert set(record.sent) == called


def test_requests_match_the_openapi_document(record):
    assert record.wrong == []


def table_of(missing, table):
    """What is missing for no reason, and rows of the table that nothing needs."""
    used = {row for row in table for each in missing if row in (each, "* " + each.split(" ", 1)[1], each.split()[0] + " *")}
    free = {each for each in missing
            if not {each, "* " + each.split(" ", 1)[1], each.split()[0] + " *"} & set(table)}
    return sorted(free), sorted(set(table) - used)


def test_every_parameter_and_every_field_of_a_request_can_be_sent(record):
    missing = set()
    for name, sent in record.sent.items():
        operation = record.operations[name]
        wanted = {each["name"] for each in operation["parameters"] if each["in"] != "path"}
        body = record.description.request_schema(operation)
        if body:
            rows = dict(record.description.resolve(body[1])["properties"])
            wanted |= {f"body {each}" for each in rows}
            if "files" in rows:
                wanted |= {f"body files.{each}" for each in record.description.schemas["RequestFile"]["properties"]}
        missing |= {f"{name} {each}" for each in wanted - sent}
    assert table_of(missing, NOT_SENT) == ([], [])


def test_every_field_of_an_answer_is_handed_on(record):
    every = {f"{name} {field}" for fields, names in record.schemas.items() for name in names for field in fields}
    assert len(every) > 300
    assert table_of(every - record.handed_on, NOT_HANDED_ON) == ([], [])


def test_no_field_is_read_that_an_answer_does_not_have(record):
    assert table_of(record.misnamed, MAY_LACK) == ([], [])

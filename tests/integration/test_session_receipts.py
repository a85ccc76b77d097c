"""What sessions leave in the log: a record of the beginning and a receipt of the end of every program that a client
starts, what clients did with files, ports and signed URLs, and a summary at the end."""

import base64
import fcntl
import hashlib
import json
import os
import signal
import time

import jsonschema
import pytest
from conftest import TOP
from serving import Serving, state_of_its_own

RECEIPT = json.loads((TOP / "docs" / "reference" / "receipt.schema.json").read_text())
EVENT = json.loads((TOP / "docs" / "reference" / "event.schema.json").read_text())


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def words(*texts):
    return b"".join(text.encode() + b"\0" for text in texts)


class Service(Serving):
    def session(self, **request):
        answer = self.call("POST", "/v1/sessions", {"policy": "data"} | request)
        assert answer.status == 201, answer.body
        return "/v1/sessions/" + answer.json["id"]

    def start(self, *arguments, **how):
        if arguments and isinstance(arguments[0], str):
            return self.call("POST", arguments[0] + "/processes", how).json
        return super().start(*arguments, **how)

    def ended(self, session, process):
        for _ in range(1000):
            process = self.call("GET", f"{session}/processes/{process['id']}").json
            if process["state"] == "ended":
                return process
            time.sleep(0.02)
        raise AssertionError(process)

    def logged(self):
        """Every payload of the log, checked against its schema."""
        end = time.monotonic() + 20
        while (done := self.glovebox("log", "verify")).returncode != 0:
            assert b"checkpoint: is missing" in done.stdout and time.monotonic() < end, done.stdout + done.stderr
            time.sleep(0.1)  # records are there, and the first checkpoint comes with their sync
        found = []
        for segment in sorted((self.glovebox.state / "daemon" / "log").glob("*.log")):
            data, at = segment.read_bytes(), 0
            while at < len(data):
                size = int.from_bytes(data[at + 4:at + 8], "little")
                payload = json.loads(base64.b64decode(json.loads(data[at + 24:at + 24 + size])["payload"]))
                jsonschema.validate(payload, EVENT if "event" in payload else RECEIPT)
                found.append(payload)
                at += 24 + size
        return found

    def of_execution(self, name):
        """(its beginnings, its receipts)"""
        log = self.logged()
        began = [one["facts"] for one in log if one.get("event") == "execution.began" and one["facts"]["execution"] == name]
        told = [one["predicate"] for one in log if "predicate" in one and
                one["predicate"].get("execution", one["predicate"].get("opened", {}).get("execution"))["id"] == name]
        return began, told

    def events(self, kind):
        return [one["facts"] for one in self.logged() if one.get("event") == kind]


@pytest.fixture
def service(glovebox, python_template):
    state_of_its_own(glovebox)
    with Service(glovebox, tcp=False) as serving:
        yield serving


def kill_gloveboxd(service):
    """And waits until its successor serves."""
    old = service.children()["gloveboxd"]
    os.kill(old, signal.SIGKILL)
    for _ in range(600):
        try:
            if service.children().get("gloveboxd", old) != old and service.call("GET", "/healthz").status == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError("gloveboxd did not come back")


def name_of(session, process):
    return f"{session.rsplit('/', 1)[1]}/{process['id']}"


def test_a_program_leaves_a_beginning_and_a_receipt(service):
    session = service.session()
    command = ["/bin/sh", "-c", "cat; echo oops >&2; exit 3"]
    process = service.start(session, command=command, cwd="/tmp", env={"SECRET": "value"}, stdin=True)
    place = f"{session}/processes/{process['id']}"
    assert process["receipt"] is None
    service.call("POST", place + "/stdin", {"data": "hello", "close": True})
    ended = service.ended(session, process)
    began, told = service.of_execution(name_of(session, process))
    assert len(began) == len(told) == 1
    assert began[0]["kind"] == "process" and len(began[0]["commitment"]) == 64
    said = told[0]
    assert said["id"] == ended["receipt"] and said["execution"]["kind"] == "process"
    assert said["execution"]["session"] == session.rsplit("/", 1)[1]
    opening = service.call("GET", f"/v1/receipts/{said['id']}/opening").json
    opened = {one["name"]: one["sha256"] for one in opening["items"] if one["group"] == "inputs"}
    assert began[0]["commitment"] == next(one["commitment"] for one in said["inputs"] if one["name"] == "command")
    assert {one["name"]: (one["bytes"], opened[one["name"]]) for one in said["inputs"]} == {
        "command": (len(words(*command)), sha256(words(*command))),
        "folder": (5, sha256(words("/tmp"))), "stdin": (5, sha256(b"hello"))}
    assert "SECRET" in said["environment_names"] and "value" not in json.dumps(said)
    assert said["outputs"]["stdout"]["bytes"] == 5 and said["outputs"]["stderr"]["bytes"] == 5
    assert said["outcome"] == {"status": "error", "fault": "code", "exit_code": 3, "signal": None}
    assert said["times"]["ended_ms"] >= said["times"]["started_ms"] > 0


@pytest.mark.parametrize("request_, end, outcome", [
    ({"command": ["/bin/true"]}, None, ("ok", None, 0, None)),
    ({"shell": "kill -9 $$"}, None, ("error", "code", None, 9)),
    ({"command": ["/no/such"]}, "not started", ("error", "code", None, None)),
    ({"command": ["/bin/sleep", "60"]}, "kill", ("error", "code", None, 15)),
    ({"command": ["/bin/sleep", "60"], "timeout_ms": 300}, None, ("limit", "limit", None, 9)),
    ({"command": ["/bin/sleep", "60"]}, "delete", ("cancelled", "caller", None, None)),
    ({"command": ["/bin/sh"], "terminal": {"rows": 10, "columns": 20}}, "delete", ("cancelled", "caller", None, None)),
    ({"command": ["/bin/sleep", "60"]}, "die", ("lost", "glovebox", None, None)),
])
def test_every_end_has_one_receipt(service, request_, end, outcome):
    session = service.session()
    process = service.start(session, **request_)
    name = name_of(session, process) if end != "not started" else session.rsplit("/", 1)[1] + "/prc_1"
    if end == "kill":
        service.call("POST", f"{session}/processes/{process['id']}/signal", {"signal": "SIGTERM"})
    if end == "delete":
        service.call("DELETE", session)
    elif end == "die":
        kill_gloveboxd(service)
    elif end != "not started":
        service.ended(session, process)
    began, told = service.of_execution(name)
    assert len(began) == len(told) == 1, (began, told)
    said = told[0]["outcome"]
    assert (said["status"], said["fault"], said.get("exit_code"), said.get("signal")) == outcome


def test_actions_of_clients_are_recorded(service):
    session = service.session()
    service.call("PUT", session + "/files/a.txt", b"12345")
    assert service.call("GET", session + "/files/a.txt").body == b"12345"
    service.call("POST", session + "/files:mkdir", {"path": "d"})
    service.call("POST", session + "/files:move", {"from": "a.txt", "to": "d/b.txt"})
    url = service.call("POST", session + "/files:sign", {"path": "d/b.txt"}).json["url"]
    assert service.call("GET", url).body == b"12345"
    service.ended(session, service.start(session, command=["/bin/true"]))
    service.call("DELETE", session)
    told = service.events("session.transfers")
    wanted = {"files_in": 1, "file_bytes_in": 5, "files_out": 2, "file_bytes_out": 10, "changes": 2, "urls_signed": 1,
              "urls_used": 1, "ports": 0}
    assert {key: sum(one[key] for one in told) for key in wanted} == wanted and len(told) <= 3
    [ended] = service.events("session.ended")
    assert {key: ended[key] for key in wanted} == wanted
    assert ended["processes"] == 1 and ended["cells"] == 0 and ended["end"] == "deleted"
    assert ended["memory_peak_bytes"] >= 0 and ended["connections"] == 0


def test_many_transfers_are_few_events(service):
    session = service.session()
    for i in range(200):
        service.call("PUT", f"{session}/files/{i}", b"x")
    service.call("DELETE", session)
    told = service.events("session.transfers")
    assert sum(one["files_in"] for one in told) == 200 and len(told) <= 3


# --- beginnings (decision 0094) ------------------------------------------------------------------------

def stream(service, code):
    """A run whose events are read as they come: (id, lines that are still to come)."""
    answer = service.open("POST", "/v1/runs?stream=1", {"policy": "data", "code": code})
    assert answer.status == 200
    return answer


def read_until(answer, word):
    lines = []
    while not lines or word not in lines[-1]:
        lines.append(answer.readline().decode())
        assert lines[-1], lines
    return "".join(lines)


def test_a_streamed_run_begins_in_the_log(service):
    answer = stream(service, "import time; print('first', flush=True); time.sleep(60)")
    seen = read_until(answer, "first")
    name = seen[seen.index("run_"):][:36]
    began, told = service.of_execution(name)
    assert len(began) == 1 and told == [] and began[0]["kind"] == "run"
    kill_gloveboxd(service)
    began, told = service.of_execution(name)
    assert len(began) == len(told) == 1 and told[0]["outcome"]["status"] == "lost"


def test_an_unread_run_has_only_its_receipt(service):
    result = service.call("POST", "/v1/runs", {"policy": "data", "code": "print(1)"}).json
    began, told = service.of_execution(result["id"])
    assert began == [] and len(told) == 1


def test_nothing_is_streamed_without_a_beginning(service, glovebox):
    """Another writer holds the lock of the log when the first event would go out."""
    with open(glovebox.state / "daemon" / "log" / "lock", "rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = stream(service, "import time; print('first', flush=True); time.sleep(8)")
        time.sleep(6)
        fcntl.flock(lock, fcntl.LOCK_UN)
    seen = read_until(answer, "event: end")
    name = seen[seen.index("run_"):][:36]
    began, told = service.of_execution(name)
    assert began == [] and len(told) == 1 and "first" in seen

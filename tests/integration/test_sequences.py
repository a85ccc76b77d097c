"""Sequences of requests by chance, from a seed that is printed: sensible ones, ones with handles of what has ended, of
another tenant's or of nothing, and ones with bodies that are wrong; callers that hang up in the middle, that send several
requests before they read an answer, that say an Idempotency-Key again. A model knows what each session's files and variable
must be, through checkpoints, rollbacks and branches. GLOVEBOX_SEED repeats a run, GLOVEBOX_SEQUENCES says how many requests
each of three clients sends (`make sequences`: 5,000)."""

import concurrent.futures
import contextlib
import copy
import http.client
import json
import os
import random
import re
import socket
import struct
import time

import pytest
from conftest import Glovebox
from described import Description
from serving import Answer, Serving, state_of_its_own
from test_route_matrix import BY_SIGNATURE, EVERY, MATRIX, OPEN, S, served

pytestmark = pytest.mark.usefixtures("python_template")

COUNT = int(os.environ.get("GLOVEBOX_SEQUENCES", "60"))
SEED = int(os.environ.get("GLOVEBOX_SEED", str(random.randrange(2 ** 32))))
LIVE = 3  # sessions of one client
NOT_CALLED = {("GET", "/v1/approvals"), ("GET", "/v1/approvals/{id}"), ("GET", "/v1/log/proof/inclusion"), ("GET", "/metrics")}
ODD = ["", "x", "0", "-1", "../..", "%2e%2e%2f", "a" * 3000, "%00", "é", "ses_", "1e9", "null", "*"]
VALUES = [None, True, 0, -1, 1 << 62, 1e308, "", "x" * 70000, "\0", "\u202e", [], {}, [[]] * 50, {"a": {"b": {}}}]
RUN, CLOSE, CHECKPOINT, ROLLBACK = S + "/contexts/{context}/run", S, S + "/checkpoints", S + "/checkpoints/{checkpoint}/rollback"
# What changes files or the interpreter in ways that the model does not follow.
UNKNOWN = {("POST", S + "/processes"), ("POST", S + "/files:move"), ("PUT", S + "/files:tar"), ("POST", S + "/contexts"),
           ("DELETE", S + "/contexts/{context}"), ("POST", S + "/contexts/{context}/restart"), ("POST", RUN),
           ("POST", S + "/contexts/{context}/interrupt"), ("POST", S + "/files:mkdir"), ("POST", S + "/processes/{process}/signal"),
           ("PUT", S + "/files/{path}"), ("DELETE", S + "/files/{path}"), ("POST", ROLLBACK), ("POST", S + "/pause")}


class Session:
    """What must be in one."""

    def __init__(self, name):
        self.name, self.files, self.variable, self.known = name, {}, None, True
        self.checkpoints, self.processes, self.is_open = {}, [], True

    @property
    def place(self):
        return f"/v1/sessions/{self.name}"

    def contents(self):
        return copy.deepcopy((self.files, self.variable, self.known))


class Pipelined:
    """One answer of several on a connection; without status at its end."""

    def __init__(self, stream):
        line = stream.readline().split()
        self.status = int(line[1]) if len(line) > 1 else None
        self.headers = http.client.parse_headers(stream) if self.status else None
        self.body = stream.read(int(self.headers["Content-Length"])) if self.status else b""

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    """One tenant's: what it has been given, and what was wrong."""

    def __init__(self, service, number):
        self.service, self.chance, self.others = service, random.Random(f"{SEED} {number}"), []
        self.key = service.key("--tenant", f"t{number}", "--scope", ",".join(EVERY))
        self.sessions, self.runs, self.faults, self.last = [], [], [], []

    # Requests

    def ask(self, method, path, body=None, headers=None, wants=()):
        """The answer, which is held against the document; None if it has no end or was not waited for."""
        self.last = [*self.last[-8:], (method, path, str(body)[:200], headers)]
        try:
            response = self.service.open(method, path, body, key=self.key, headers=headers)
            if (response.headers["Content-Type"] or "").startswith("text/event-stream"):
                response.read(self.chance.choice([0, 1]))
                response.close()
                return None
            answer = Answer(response)
        except (OSError, http.client.HTTPException) as broken:
            self.fault(f"no answer: {broken!r}")
            return None
        if answer.status >= 500 and answer.status != 503 and "/ports/" not in path:
            self.fault(f"{answer.status} {answer.body[:300]!r}")
        elif wants and answer.status not in (*wants, 429, 503):
            self.fault(f"{answer.status} instead of {wants}: {answer.body[:300]!r}")
        elif self.service.description.route(method, path) and method != "HEAD":
            for complaint in self.service.description.check(method, path, answer):
                self.fault(complaint)
        return answer

    def fault(self, text):
        self.faults.append(f"{text}\n    after " + "\n    after ".join(map(str, reversed(self.last))))

    def open_sessions(self):
        return [session for session in self.sessions if session.is_open]

    # Sensible ones

    def create(self):
        if len(self.open_sessions()) < LIVE:
            answer = self.ask("POST", "/v1/sessions", {"policy": "minimal"}, wants=(201,))
            if answer and answer.status == 201:
                self.sessions.append(Session(answer.json["id"]))

    def write(self, session):
        name, data = f"f{self.chance.randrange(4)}", os.urandom(self.chance.choice([0, 1, 4096, 100000]))
        answer = self.ask("PUT", f"{session.place}/files/{name}", data, wants=(200,) if session.known else ())
        if answer and answer.status == 200:
            session.files[name] = data

    def read(self, session):
        name = f"f{self.chance.randrange(4)}"
        wants = () if not session.known else (200,) if name in session.files else (404,)
        answer = self.ask("GET", f"{session.place}/files/{name}", wants=wants)
        if answer and answer.status == 200 and session.known and answer.body != session.files[name]:
            self.fault(f"{name} holds {len(answer.body)} other bytes")

    def remove(self, session):
        if session.known and session.files:
            name = self.chance.choice(list(session.files))
            answer = self.ask("DELETE", f"{session.place}/files/{name}", wants=(200,))
            if answer and answer.status == 200:
                del session.files[name]

    def assign(self, session):
        number = self.chance.randrange(1000)
        answer = self.ask("POST", f"{session.place}/contexts/python/run", {"code": f"x = {number}"}, wants=(200,) if session.known else ())
        if answer and answer.status == 200:
            session.variable = number
            session.known = session.known and answer.json["status"] == "ok"
            self.runs.append(answer.json["receipt"])

    def look(self, session):
        answer = self.ask("POST", f"{session.place}/contexts/python/run", {"code": "print(globals().get('x'))"},
                          wants=(200,) if session.known else ())
        if answer and answer.status == 200:
            self.runs.append(answer.json["receipt"])
            if session.known and answer.json["stdout"] != f"{session.variable}\n":
                self.fault(f"x is {answer.json['stdout']!r} and was {session.variable}: {answer.json}")

    def checkpoint(self, session):
        answer = self.ask("POST", f"{session.place}/checkpoints", {}, wants=(201, 409) if session.known else ())
        if answer and answer.status == 201:
            session.checkpoints[answer.json["id"]] = session.contents()

    def roll_back(self, session):
        if session.checkpoints:
            name = self.chance.choice(list(session.checkpoints))
            answer = self.ask("POST", f"{session.place}/checkpoints/{name}/rollback", wants=(200,) if session.known else ())
            if answer and answer.status == 200:
                session.files, session.variable, session.known = copy.deepcopy(session.checkpoints[name])
            elif answer and answer.status >= 500:
                session.known = False

    def branch(self, session):
        if len(self.open_sessions()) >= LIVE:
            return
        answer = self.ask("POST", f"{session.place}/branch", {}, wants=(201, 409) if session.known else ())
        if answer and answer.status == 201:
            self.sessions.append(Session(answer.json["id"]))
            self.sessions[-1].files, self.sessions[-1].variable, self.sessions[-1].known = session.contents()

    def pause(self, session):
        self.ask("POST", f"{session.place}/pause", wants=(200, 409))
        self.ask("POST", f"{session.place}/resume", wants=(200, 409))

    def start(self, session):
        answer = self.ask("POST", f"{session.place}/processes", {"command": ["sleep", str(self.chance.choice([0, 1, 60]))]})
        if answer and answer.status == 201:
            session.processes.append(answer.json["id"])

    def close(self, session):
        answer = self.ask("DELETE", session.place, wants=(200,))
        session.is_open = not (answer and answer.status == 200)
        if not session.is_open:
            self.ask("GET", f"{session.place}/files/f0", wants=(409,))

    def run(self):
        answer = self.ask("POST", "/v1/runs", {"code": self.chance.choice(["print(1)", "1/0", "open('o', 'w').write('o')"]),
                                               "policy": "minimal"}, wants=(200,))
        if answer and answer.status == 200:
            self.runs.append(answer.json["receipt"])

    def again(self):
        """The same key begins one thing: the same request is answered the same, another one is refused."""
        once, body = {"Idempotency-Key": f"{self.chance.getrandbits(64):x}"}, {"code": "import os; print(os.urandom(8))", "policy": "minimal"}
        answers = [self.ask("POST", "/v1/runs", body, once) for _ in range(self.chance.randint(2, 4))]
        ran = {(answer.json["id"], answer.json["stdout"]) for answer in answers if answer and answer.status == 200}
        if len(ran) > 1:
            self.fault(f"one key ran {len(ran)} times: {ran}")
        self.runs += {answer.json["receipt"] for answer in answers if answer and answer.status == 200}
        if ran:
            self.ask("POST", "/v1/runs", body | {"code": "print(2)"}, once, wants=(409,))

    # On the wire

    def request(self, method, path, body=b"", length=None):
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key['key']}\r\n"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.service.port), timeout=60)

    def hang_up(self):
        """In the middle of the head, of the body, or of the answer. What it began goes on, or never began."""
        session = self.chance.choice(self.open_sessions() or [Session("ses_" + "0" * 32)])
        code = json.dumps({"code": "y = 1", "policy": "minimal"}).encode()
        whole = self.chance.choice([
            self.request("POST", "/v1/runs", code), self.request("GET", f"{session.place}/files:watch?path=/workspace"),
            self.request("PUT", f"{session.place}/files/cut", b"x" * 1000, 100000), self.request("GET", "/v1/runs"),
            self.request("POST", f"{session.place}/contexts/python/run", b'{"code": "y = 1"}')])
        self.last = [*self.last[-8:], ("hangs up", whole[:60])]
        with self.connect() as peer:
            peer.sendall(whole[:self.chance.choice([1, 40, len(whole) - 1, len(whole), len(whole)])])
            if self.chance.random() < .5:
                peer.settimeout(0.05)
                with contextlib.suppress(OSError):
                    peer.recv(self.chance.choice([1, 100]))
            if self.chance.random() < .5:  # not FIN, but RST
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def pipeline(self):
        """Answers come in the order of the requests, each as if it had been alone."""
        paths = [self.chance.choice(["/v1/policies", "/v1/limits", "/v1/sessions/ses_0", "/v1/runs/run_0", "/v1/log/key"])
                 for _ in range(self.chance.randint(2, 8))]
        self.last = [*self.last[-8:], ("pipelines", paths)]
        with self.connect() as peer:
            peer.sendall(b"".join(self.request("GET", path) for path in paths))
            stream = peer.makefile("rb")
            for path in paths:
                answer = Pipelined(stream)
                if answer.status is None:
                    self.fault(f"{path}: no answer among {paths}")
                    return
                for complaint in self.service.description.check("GET", path, answer):
                    self.fault(complaint)
                if (answer.status == 404) != ("_0" in path) and answer.status != 429:
                    self.fault(f"{path}: {answer.status} {answer.body[:100]!r}")

    # Others

    def handles(self, owner):
        """Names for the parts of a path, from what this client or another one has or had."""
        session = self.chance.choice(owner.sessions) if owner.sessions else Session("ses_" + "0" * 32)
        return session, {"id": session.name, "context": "python", "process": self.chance.choice([*session.processes, "prc_0"]),
                         "checkpoint": self.chance.choice([*session.checkpoints, "ckp_" + "0" * 32]), "port": "8080",
                         "path": f"f{self.chance.randrange(4)}", "sha256": "0" * 64}

    def worsen(self, body):
        """The same body with one thing wrong, or something else altogether."""
        if not isinstance(body, dict) or self.chance.random() < .2:
            return self.chance.choice([b"", b"{", b"[]", b"null", b"\xff", b'{"a":1,"a":2}', b"[" * 5000, b'"' + b"x" * 3000 + b'"'])
        return body | {self.chance.choice([*body, "policy", "limits", "metadata", "surprise"]): self.chance.choice(VALUES)}

    def wild(self):
        """Any route with any handles and any body; another tenant's things do not exist."""
        method, path = self.chance.choice(self.service.rows)
        is_foreign = self.chance.random() < .3 and "{id}" in path and path.startswith(S)
        session, names = self.handles(self.chance.choice(self.others) if is_foreign else self)
        body = MATRIX.get((method, path), (0, 0, None))[2]
        if self.chance.random() < .4:
            body = self.worsen(body)
        if self.chance.random() < .1:
            names[self.chance.choice(list(names))] = self.chance.choice(ODD)
            is_foreign = False
        place = re.sub(r"\{(\w+)\}", lambda found: names[found.group(1)], path)
        if self.chance.random() < .2:
            place += f"?{self.chance.choice(['limit', 'cursor', 'path', 'offset', 'from', 'wait', 'state', 'x'])}={self.chance.choice(ODD)}"
        headers = self.chance.choice([{}, {}, {}, {"Idempotency-Key": f"k{self.chance.randrange(5)}"}, {"Prefer": "respond-async"},
                                      {"Range": "bytes=1-"}, {"Accept": "text/event-stream"}, {"Content-Type": "text/csv"}])
        answer = self.ask(method, place.encode("ascii", "replace").decode(), body, headers)
        if is_foreign and answer and answer.status < 400:
            self.fault("it is another tenant's")
        if not is_foreign and (method, path) in UNKNOWN and not (answer and 400 <= answer.status < 500):
            session.known = False
        if (method, path) == ("DELETE", CLOSE):
            session.is_open = session.is_open and not (not is_foreign and (answer is None or answer.status == 200))
        if answer and answer.status == 201 and (method, path) in (("POST", "/v1/sessions"), ("POST", S + "/branch")):
            self.ask("DELETE", f"/v1/sessions/{answer.json['id']}")

    def step(self):
        deed = self.chance.choice([self.write, self.read, self.read, self.remove, self.assign, self.look, self.look, self.checkpoint,
                                   self.roll_back, self.branch, self.pause, self.start, self.close, self.create, self.create,
                                   self.run, self.again, self.hang_up, self.pipeline, self.wild, self.wild, self.wild, self.wild])
        if deed in (self.create, self.run, self.again, self.hang_up, self.pipeline, self.wild):
            deed()
        elif sessions := self.open_sessions():
            deed(self.chance.choice(sessions))

    def play(self):
        for _ in range(COUNT):
            if len(self.faults) > 5:
                break
            self.step()
        for session in self.open_sessions():
            self.ask("DELETE", session.place)


@pytest.fixture(name="service")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("sequences"))
    state_of_its_own(glovebox)
    with Serving(glovebox, "--queue", "500", "--key-queue", "500", slots=24) as service:
        service.description = Description(service.call("GET", "/openapi.json").json)
        service.rows = sorted(served(service) - OPEN - BY_SIGNATURE - NOT_CALLED)
        yield service


def slots_in_use(service):
    text = service.call("GET", "/metrics").body.decode()
    return {name: int(value) for name, value in re.findall(r"^glovebox_(slots_in_use|slots_stuck|pool_idle|pool_building|pool_draining) (\d+)$",
                                                           text, re.MULTILINE)}


def test_every_sequence_of_requests(service):
    print(f"GLOVEBOX_SEED={SEED} GLOVEBOX_SEQUENCES={COUNT}")
    daemon = service.children()["gloveboxd"]
    clients = [Client(service, number) for number in range(3)]
    for client in clients:
        client.others = [other for other in clients if other is not client]
    with concurrent.futures.ThreadPoolExecutor(len(clients)) as threads:
        list(threads.map(Client.play, clients))
    faults = [fault for client in clients for fault in client.faults]
    assert not faults, "\n".join([f"GLOVEBOX_SEED={SEED}", *faults])
    assert service.children()["gloveboxd"] == daemon, service.log.read_text()[-4000:]
    receipts = [receipt for client in clients for receipt in client.runs]
    assert len(receipts) == len(set(receipts)) and None not in receipts
    assert len(receipts) > COUNT / 10 and sum(len(client.sessions) for client in clients) > COUNT / 20, "hardly anything was done"
    end = time.monotonic() + 60
    while (slots := slots_in_use(service))["slots_in_use"] > slots["pool_idle"] + slots["pool_building"]:
        assert time.monotonic() < end, slots
        time.sleep(0.2)
    assert slots["slots_stuck"] == 0

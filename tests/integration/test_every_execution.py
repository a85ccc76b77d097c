"""Every execution, with any interface and any end, leaves exactly one receipt, which matches what was handed out.
Executions are random, from a seed that is printed: GLOVEBOX_SEED repeats one, GLOVEBOX_EXECUTIONS is their number
(`make executions`: 2,000)."""

import base64
import collections
import concurrent.futures
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import random
import signal
import threading
import time

import jsonschema
from conftest import TOP
from serving import Serving, state_of_its_own

COUNT = int(os.environ.get("GLOVEBOX_EXECUTIONS", "200"))
SEED = int(os.environ.get("GLOVEBOX_SEED", str(random.randrange(2 ** 32))))
RECEIPT = json.loads((TOP / "docs" / "reference" / "receipt.schema.json").read_text())
WORKERS = 4

CODES = [
    "print({text!r})",
    "import sys; sys.stderr.write({text!r}); sys.exit({number})",
    "raise ValueError({text!r})",
    "import os, signal; print('x', flush=True); os.kill(os.getpid(), {number} % 30 + 1)",
    "import ctypes; ctypes.string_at(0)",
    "import os\nfor i in range({number}):\n open(f'{{i}}', 'w').write({text!r})",
    "import os\nos.chdir('/workspace')\nfor i in range(15): os.mkdir('\"' * 200); os.chdir('\"' * 200)\n"
    "for i in range({number}): open(str(i), 'w').close()",
    "open(b'/workspace/\\xff\\xfe', 'w'); open('/workspace/\\u202e\\t', 'w')",
    "print('y' * {number} * 10000)",
    "print('z' * 30_000_000)",
    "import time; time.sleep({number})",
    "x = [bytearray(1 << 20) for _ in range(2000)]",
    "import subprocess; subprocess.Popen(['sleep', '30']); print({text!r})",
    "import socket; socket.create_connection(('192.0.2.1', 80), 1)",
    "syntax error {number}",
    "import os; os._exit({number})",
]
SHELLS = ["echo {number}", "exit {number}", "kill -9 $$", "sleep 60", "cat", "yes | head -c 3000000", "/no/such",
          "sleep 30 & echo $!", "printf '\\377\\001'"]


class Service(Serving):
    """One whose gloveboxd may be gone for a moment: what was asked is then not known to have begun."""

    def ask(self, method, path, body=None):
        try:
            return self.call(method, path, body)
        except (OSError, http.client.HTTPException):
            return None


class Player:
    """Makes executions, and keeps what was told of them."""

    def __init__(self, service, seed):
        self.service, self.chance = service, random.Random(seed)
        self.results, self.begun = [], []

    def text(self):
        return "".join(self.chance.choice("ab \"\\\n\x01\u202e\U0001f600é'") for _ in range(self.chance.randrange(40)))

    def code(self):
        return self.chance.choice(CODES).format(text=self.text(), number=self.chance.randrange(60))

    def request(self):
        names = ["/".join(["d\"" * self.chance.randrange(1, 60)] * self.chance.randrange(1, 9)) + f"/{i}"
                 for i in range(self.chance.choice([0, 0, 1, 30]))]
        return {"policy": "data", "code": self.code(), "limits": {"wall_ms": self.chance.choice([200, 1000, 3000])},
                "files": [{"path": name, "content": self.text()} for name in names],
                "env": {f"N{i}{'V' * self.chance.randrange(200)}": "v" for i in range(self.chance.choice([0, 3, 90]))}}

    def take(self, answer):
        if answer is not None and answer.status == 200:
            self.results.append(answer.json)

    def run(self):
        self.take(self.service.ask("POST", "/v1/runs", self.request()))

    def stream(self):
        """Perhaps hangs up in the middle of it."""
        stop_after = self.chance.choice([1, 5, 1000])
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = self.service.open("POST", "/v1/runs?stream=1", self.request())
            event = ""
            for _ in range(stop_after * 4):
                line = answer.readline().decode()
                if line.startswith("event: "):
                    event = line[7:].strip()
                elif line.startswith("data: ") and event == "started":
                    self.begun.append(json.loads(line[6:])["id"])
                elif line.startswith("data: ") and event == "end":
                    self.results.append(json.loads(line[6:]))
                elif not line:
                    break
            answer.close()

    def process(self, session):
        request = {"shell": self.chance.choice(SHELLS).format(number=self.chance.randrange(200)),
                   "stdin": self.chance.random() < .5} | self.chance.choice([{}, {"timeout_ms": 200}, {"terminal": {}}])
        answer = self.service.ask("POST", session + "/processes", request)
        if answer is None or answer.status != 201:
            return
        process = answer.json["id"]
        self.begun.append(f"{session.rsplit('/', 1)[1]}/{process}")
        if self.chance.random() < .5:
            self.service.ask("POST", f"{session}/processes/{process}/signal", {"signal": "SIGKILL"})

    def session(self):
        answer = self.service.ask("POST", "/v1/sessions", {"policy": "data"})
        if answer is None or answer.status != 201:
            return
        session = "/v1/sessions/" + answer.json["id"]
        for _ in range(self.chance.randrange(1, 6)):
            deed = self.chance.randrange(4)
            if deed == 0:
                self.take(self.service.ask("POST", session + "/contexts/python/run",
                                           {"code": self.code(), "limits": {"wall_ms": 500}}))
            elif deed == 1:
                self.service.ask("PUT", f"{session}/files/{self.chance.randrange(9)}", self.text().encode())
            else:
                self.process(session)
        if self.chance.random() < .8:
            self.service.ask("DELETE", session)

    def play(self, count):
        for _ in range(count):
            self.chance.choice([self.run, self.run, self.run, self.stream, self.session])()


def descendants(pid):
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for task in pathlib.Path(f"/proc/{one}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found[1:]


def kill_some(service, chance, is_over):
    """Now and then the init of a sandbox, and three times gloveboxd: five deaths in a row end the service."""
    deaths = 0
    while not is_over.wait(chance.uniform(1, 3)):
        pids = descendants(service.process.pid)
        with contextlib.suppress(OSError, IndexError, KeyError):
            if deaths < 3 and chance.random() < .3:
                os.kill(service.children()["gloveboxd"], signal.SIGKILL)
                deaths += 1
            else:
                inits = [pid for pid in pids if "glovebox-init" in pathlib.Path(f"/proc/{pid}/cmdline").read_text()]
                os.kill(chance.choice(inits), signal.SIGKILL)


def logged(folder):
    for segment in sorted(folder.glob("*.log")):
        data, at = segment.read_bytes(), 0
        while at < len(data):
            size = int.from_bytes(data[at + 4:at + 8], "little")
            yield json.loads(base64.b64decode(json.loads(data[at + 24:at + 24 + size])["payload"]))
            at += 24 + size


def mac(key, text):
    return hashlib.blake2b(text.encode(), key=key, digest_size=32).digest()


def committed(secret, execution, item, digest):
    """As docs/receipts.md says it."""
    mask = mac(mac(mac(secret, execution), item), "commitment")
    return bytes(a ^ b for a, b in zip(mask, bytes.fromhex(digest), strict=True)).hex()


def check_result(result, receipts, secret):
    """What was handed out has a receipt, and is what that says."""
    if result["receipt"] is None:
        assert result["stdout"] == result["stderr"] == "" and not result["artifacts"] and not result["results"], result
        return
    [said] = receipts[result["id"]]
    assert said["id"] == result["receipt"] and said["outcome"]["status"] == result["status"]
    for index, name in enumerate(("stdout", "stderr")):
        output = said["outputs"][name]
        told = result["truncated"][f"{name}_total_bytes"]
        assert output["bytes"] == told, (index, result)
        text = result[name].encode(errors="surrogatepass")
        if told == output["kept_bytes"] == len(text) and "\ufffd" not in result[name]:
            digest = hashlib.sha256(text).hexdigest()
            assert output["commitment"] == committed(secret, result["id"], f"outputs/{name}", digest)
    rows = [{"bytes": one["bytes"], "name": one["path"],
             "commitment": committed(secret, result["id"], f"artifacts/{one['path']}", one["sha256"])}
            for one in result["artifacts"]]
    assert said["artifacts"] == rows[:len(said["artifacts"])]
    if "artifacts" in said["shortened"]:
        whole = json.dumps(rows, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        assert said["shortened"]["artifacts"] == {"count": len(rows), "sha256": hashlib.sha256(whole).hexdigest()}
    else:
        assert len(said["artifacts"]) == len(rows)


def test_every_execution_has_one_receipt(glovebox, python_template):
    print(f"GLOVEBOX_SEED={SEED} GLOVEBOX_EXECUTIONS={COUNT}")
    state = state_of_its_own(glovebox)
    is_over = threading.Event()
    with Service(glovebox, tcp=False, slots=12) as service:
        players = [Player(service, SEED + i) for i in range(WORKERS)]
        killer = threading.Thread(target=kill_some, args=(service, random.Random(SEED), is_over))
        killer.start()
        try:
            with concurrent.futures.ThreadPoolExecutor(WORKERS) as threads:
                list(threads.map(lambda player: player.play(COUNT // WORKERS), players))
        finally:
            is_over.set()
            killer.join()
        for _ in range(200):
            if service.ask("GET", "/healthz"):
                break
            time.sleep(0.1)
    log = (glovebox.folder / "serve.log").read_text()
    with Service(glovebox, tcp=False):
        pass  # the next daemon records one that was killed on its way out
    verified = glovebox("log", "verify")
    assert verified.returncode == 0, verified.stdout
    receipts, begun = collections.defaultdict(list), set()
    for payload in logged(state / "daemon" / "log"):
        if payload.get("event") == "execution.began":
            begun.add(payload["facts"]["execution"])
        elif "predicate" in payload:
            jsonschema.validate(payload, RECEIPT)
            said = payload["predicate"]
            receipts[said.get("execution", said.get("opened", {}).get("execution"))["id"]].append(said)
    assert {name: len(said) for name, said in receipts.items() if len(said) != 1} == {}
    assert begun <= set(receipts), (begun - set(receipts), log[-6000:])
    secret = (state / "daemon" / "opening.key").read_bytes()
    for player in players:
        assert set(player.begun) <= begun, set(player.begun) - begun
        for result in player.results:
            check_result(result, receipts, secret)
    assert sum(len(player.results) for player in players) > COUNT / 10

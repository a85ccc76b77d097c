"""The system's clock is set forward and back while gloveboxd serves. Durations follow a clock that does not jump; an
approval or a signed URL ends when the system's clock reaches its time, and does not become valid again."""

import datetime
import json
import sys
import time

import pytest
from conftest import BUILD, TOP, Glovebox
from mcp_client import META, Stateless
from serving import Serving, state_of_its_own, with_policies
from test_mcp import wait_for

sys.path.append(str(TOP / "tests" / "soak"))

from preloaded_build import preloaded_build  # noqa: E402

pytestmark = pytest.mark.usefixtures("python_template")

HOUR, DAY = 3600, 86400
BURN = "import time\nend = time.process_time() + 1.2\nwhile time.process_time() < end: pass"


class Stepped(Serving):
    """`clock.set(seconds)` from the right time."""

    def __init__(self, glovebox):
        self.file = glovebox.folder / "step"
        self.file.write_text("0" * 20)
        self.file.chmod(0o644)
        glovebox.program = str(preloaded_build(BUILD, glovebox.folder, "step_clock.so", STEP_CLOCK=self.file) / "glovebox")
        super().__init__(glovebox, env=with_policies(glovebox, {"asked": "approval: {when: [always], scopes: [once, time], expires: 15m}",
                                                                "aged": "sessions: {age: 2h}"}))

    def set(self, seconds):
        with open(self.file, "r+") as file:
            file.write(f"{seconds:20}")
        began = datetime.datetime.fromisoformat(self.call("GET", "/v1/network/rules").json["started_at"])
        assert abs(began.timestamp() - time.time() - seconds) < 600, "the clock is set"


@pytest.fixture(name="clock", scope="module")
def clock_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("clock"))
    state_of_its_own(glovebox)
    with Stepped(glovebox) as serving:
        yield serving


@pytest.fixture(name="step", params=[HOUR, -HOUR, 3 * DAY, -3 * DAY], ids=["forward", "back", "days-forward", "days-back"])
def step_(clock, request):
    yield request.param
    clock.set(0)


def test_a_task_keeps_its_time(clock, step):
    client = Stateless(clock, clock.key("--scope", "run"), {"extensions": {META + "tasks": {}}})
    made = client.ask("tools/call", {"name": "run_code", "arguments": {"code": "import time; time.sleep(3)", "policy": "minimal"}})["result"]
    clock.set(step)
    def look():
        told = client.ask("tasks/get", {"taskId": made["taskId"]})["result"]
        return told["status"] != "working" and told
    told = wait_for(look)
    assert 900000 <= told["ttlMs"] < 960000, told


def test_a_day_begins_once(clock, step):
    def burn():
        answer = clock.run(BURN, key=key)
        assert answer.status == 429 or (answer.json["status"] == "ok" and answer.json["usage"]["cpu_ms"] > 1000), answer.json
        return answer.status

    key = clock.key("--cpu-seconds-per-day", "1")
    assert burn() == 200
    assert clock.run("1", key=key).status == 429
    clock.set(step)
    if step < 0:
        assert clock.run("1", key=key).status == 429, "what was used is used"
        return
    if burn() == 200:  # another day
        clock.set(0)
    assert clock.run("1", key=key).status == 429, "what was used is used"


def test_a_session_lives_as_long_as_its_policy_says(clock, step):
    made = clock.call("POST", "/v1/sessions", {"policy": "aged", "ttl_seconds": HOUR, "idle_seconds": HOUR})
    place = f"/v1/sessions/{made.json['id']}"
    clock.set(step)
    assert clock.call("PATCH", place, {"ttl_seconds": 2 * HOUR - 30}).status == 200
    assert clock.call("PATCH", place, {"ttl_seconds": 2 * HOUR + 60}).status == 422
    time.sleep(1.5)
    run = clock.call("POST", f"{place}/contexts/python/run", {"code": "import time; time.sleep(0.2)"})
    assert run.json["status"] == "ok" and 100 < run.json["usage"]["wall_ms"] < 20000, run.json
    assert clock.call("DELETE", place).status == 200


def test_a_run_takes_its_time(clock, step):
    run = {"code": "import time; time.sleep(1)", "language": "python", "policy": "minimal", "limits": {"wall_ms": 10000}}
    stream = clock.open("POST", "/v1/runs", run, headers={"Accept": "text/event-stream"})
    clock.set(step)
    data = [line.removeprefix("data: ") for line in stream.read().decode().splitlines() if line.startswith("data: ")]
    result = json.loads(data[-1])
    assert result.get("status") == "ok" and 900 < result["usage"]["wall_ms"] < 10000, data


class TestApprovals:
    def ask(self, clock, key, code):
        return clock.call("POST", "/v1/runs", {"code": code, "policy": "asked", "language": "python"}, key=key)

    def decide(self, clock, name, key, **how):
        return clock.call("POST", f"/v1/approvals/{name}:decide", {"decision": "approve"} | how, key=key)

    @pytest.fixture
    def keys(self, clock):
        name = f"t{time.monotonic_ns()}"
        return clock.key("--tenant", name), clock.key("--tenant", name, "--scope", "approve")

    def test_one_that_has_expired_does_not_come_back(self, clock, keys):
        asker, approver = keys
        name = self.ask(clock, asker, "print(1)").json["approval"]
        clock.set(HOUR)
        assert self.decide(clock, name, approver).status == 409
        clock.set(0)
        assert self.decide(clock, name, approver).status == 409
        assert self.ask(clock, asker, "print(1)").json["approval"] != name

    def test_once_is_once(self, clock, keys, step):
        asker, approver = keys
        name = self.ask(clock, asker, "print(2)").json["approval"]
        assert self.decide(clock, name, approver, until_seconds=30 * DAY).status == 200
        assert self.ask(clock, asker, "print(2)").json["stdout"] == "2\n"
        clock.set(step)
        assert self.ask(clock, asker, "print(2)").status == 202

    def test_a_key_that_has_expired_gives_nothing(self, clock, keys):
        asker, _ = keys
        tenant = asker["tenant"]
        approver = clock.key("--tenant", tenant, "--scope", "approve", "--expires", "1h")
        name = self.ask(clock, asker, "print(3)").json["approval"]
        assert self.decide(clock, name, approver, until_seconds=DAY).status == 200
        clock.set(2 * HOUR)
        assert clock.call("GET", "/v1/approvals", key=approver).status == 401
        assert self.ask(clock, asker, "print(3)").status == 202
        clock.set(0)


def test_a_signed_url_ends_with_its_time(clock):
    key = clock.key("--scope", "sessions")
    made = clock.call("POST", "/v1/sessions", {"policy": "minimal"}, key=key).json["id"]
    assert clock.call("PUT", f"/v1/sessions/{made}/files/a", b"x", key=key).status == 200
    url = clock.call("POST", f"/v1/sessions/{made}/files:sign", {"path": "a", "expires_seconds": 60}, key=key).json["url"]
    assert clock.call("GET", url, tcp=True).body == b"x"
    clock.set(HOUR)
    assert clock.call("GET", url, tcp=True).status == 401
    clock.set(0)
    assert clock.call("DELETE", f"/v1/sessions/{made}", key=key).status == 200


def test_every_receipt_verifies(clock):
    done = clock.glovebox("log", "verify", "--log", clock.glovebox.state / "daemon" / "log")
    assert done.returncode == 0, done.stdout + done.stderr

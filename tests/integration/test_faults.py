"""Calls of gloveboxd and glovebox-egress that fail, once or for a second, while a story of requests goes on: a run with an
artifact, one that asks a server outside, one that a person approves, a session with a cell, files and a process. Afterwards
all is as if nothing had happened: each execution has one receipt, what was handed out is what the receipt says, no key ran
twice, slots and descriptors are back, and gloveboxd answers and says the truth of itself.

GLOVEBOX_FAULTS says how many calls fail, one after the other (`make faults`); GLOVEBOX_SEED repeats a run, GLOVEBOX_FAULT
faults as a failure prints them, with semicolons between."""

import base64
import collections
import contextlib
import hashlib
import http.client
import json
import os
import random
import re
import subprocess
import threading
import time

import pytest
from conftest import Glovebox
from fault_rig import Fault, Plans, chosen, descriptors
from http.server import BaseHTTPRequestHandler
from serving import Answer, Serving, let_others_in, state_of_its_own, with_policies
from web_server import WebServer

pytestmark = pytest.mark.usefixtures("python_template")

COUNT = int(os.environ.get("GLOVEBOX_FAULTS", "16"))
SEED = int(os.environ.get("GLOVEBOX_SEED", str(random.randrange(2 ** 32))))
ONE = os.environ.get("GLOVEBOX_FAULT")
BACK_S = 10
KEPT = [  # what was found
    "glovebox-egress splice.other 1 ENOMEM once",  # the code waited for an answer to the end of its time
    "glovebox-egress sendmsg.socket 1 ENOBUFS lasting",  # gloveboxd waited half a minute for the end of a channel
    "gloveboxd sendmsg.socket 2 ENOMEM lasting",  # a slot was never free again
    "gloveboxd recv.socket 12 ENOMEM once",  # a session ended
    "gloveboxd epoll_ctl.none 3 ENOMEM once",  # libuv ends gloveboxd, and nothing said why
    "gloveboxd epoll_ctl.http 1 ENOMEM once",  # a connection that libmicrohttpd had freed stayed in its list, for ever
    "gloveboxd epoll_ctl.http 4 ENOSPC lasting",  # and one that was freed after a wait left its request behind
    "gloveboxd sendmsg.socket 6 ENOBUFS once",  # the end of a channel was asked for once, and waited for for half a minute
    "gloveboxd readdir.none 1 EIO lasting",  # receipts that are there did not exist
]
KEPT_AT_START = [
    "gloveboxd fdopen.none 2 ENOMEM once",  # the list of sessions was replaced by an empty one
    "gloveboxd readdir.none 1 EIO once",
    "gloveboxd open.none 20 ENFILE once",  # a policy could not be used until the next reload
    "gloveboxd open.none 18 EACCES once",
    "gloveboxd access.none 1 EACCES lasting",  # templates were not there, and did not come back
    "gloveboxd pread.file 18 SHORT lasting",  # Idempotency-Keys were forgotten, and began a second time
]
RUN = {"language": "python", "policy": "minimal"}


class Upstream(BaseHTTPRequestHandler):
    """Counts what comes; each token should come once."""

    seen = collections.Counter()

    def do_POST(self):
        Upstream.seen[self.path.rsplit("/", 1)[1]] += 1
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"here")

    def log_message(self, *_):
        pass


class Faulty(Serving):
    """A service whose programs follow plans, with two keys and what they were told."""

    def __init__(self, glovebox, plans, upstream):
        self.plans, self.slow, self.positions = plans, [], {}
        self.begun, self.recorded = collections.Counter(), collections.Counter()  # executions, in the log
        glovebox.program = str(plans.build / "glovebox")
        self.policies = with_policies(glovebox, {
            "asked": "approval: {when: [always], scopes: [once]}",
            "outside": f"network: {{endpoints: {{hits: {{url: 'http://127.0.0.1:{upstream}', methods: [POST]}}}}}}"})
        super().__init__(glovebox, tcp=False, slots=6, env=self.policies)
        self.asker = self.key("--tenant", "t", "--scope", "run,sessions,audit,admin")
        self.approver = self.key("--tenant", "t", "--scope", "approve")
        self.daemon = self.children()["gloveboxd"]

    def start_again(self):
        """With faults, perhaps: None once it serves, or how it ended."""
        with open(self.log, "ab") as log:
            self.process = self.glovebox.start("serve", "--socket", self.socket, "--slots", "6", env=self.policies,
                                               stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        return until(lambda: (self.health() or (0,))[0] == 200 or self.process.poll() is not None, 2 * BACK_S) \
            and self.process.poll()

    def end(self):
        """Seconds until it has ended; those that do not are killed."""
        begin = time.monotonic()
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            victims = [self.process.pid, *self.children().values()]
            for pid in victims:
                with contextlib.suppress(OSError):
                    os.kill(pid, 9)
            self.process.wait()
        return time.monotonic() - begin

    def children(self):
        """The programs that were preloaded have another name."""
        return {name.removesuffix(".real"): pid for name, pid in super().children().items()}

    def ask(self, method, path, body=None, key=None, headers=None):
        """None if the connection broke."""
        begin = time.monotonic()
        try:
            return Answer(self.open(method, path, body, key=key or self.asker, headers=headers, tcp=False))
        except TimeoutError:
            return None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            if time.monotonic() - begin > BACK_S:
                self.slow.append(f"{method} {path} took {time.monotonic() - begin:.1f} s")

    def gauges(self):
        answer = self.ask("GET", "/metrics")
        if answer is None or answer.status != 200:
            return None
        rows = re.findall(r"^glovebox_(slots_in_use|slots_stuck|pool_idle|pool_building|pool_draining)(?:{.*})? (\d+)$",
                          answer.body.decode(), re.MULTILINE)
        sums = collections.Counter()
        for name, value in rows:
            sums[name] += int(value)
        return sums

    def health(self):
        answer = self.ask("GET", "/healthz")
        return answer and (answer.status, answer.json.get("cause") or answer.json.get("error", ""))

    def read_log(self):
        """What the log has had since the last time."""
        for segment in sorted((self.glovebox.state / "daemon" / "log").glob("*.log")):
            data = segment.read_bytes()
            at = self.positions.get(segment, 0)
            while at + 24 <= len(data) and at + 24 + (size := int.from_bytes(data[at + 4:at + 8], "little")) <= len(data):
                self.count(json.loads(base64.b64decode(json.loads(data[at + 24:at + 24 + size])["payload"])))
                at += 24 + size
            self.positions[segment] = at

    def count(self, record):
        if record.get("event") == "execution.began":
            self.begun[record["facts"]["execution"]] += 1
        elif "predicate" in record:
            said = record["predicate"]
            self.recorded[said.get("execution", said.get("opened", {}).get("execution"))["id"]] += 1


def outside(token):
    """A request whose code asks the upstream once."""
    return RUN | {"policy": "outside", "limits": {"wall_ms": 5000},
                  "code": f"import urllib.request as u\nprint(u.urlopen('http://hits.endpoint/{token}', b'x').read().decode())"}


class Story:
    """One course of requests. What was wrong with answers is in `wrong`; of what did not come nothing is known."""

    def __init__(self, service, name):
        self.service, self.name = service, name
        self.wrong, self.results, self.keys, self.hits = [], [], {}, []

    def ask(self, method, path, body=None, wants=(200,), **how):
        """The answer if it is one of those that are wanted. Anything else must say that it is the service's fault."""
        answer = self.service.ask(method, path, body, **how)
        if answer is None or answer.status in wants:
            return answer
        if answer.status < 500 and answer.status != 429:
            self.wrong.append(f"{method} {path}: {answer.status} {answer.body[:300]!r}")
        return None

    def take(self, answer, stdout):
        """A result is whole, and is what the code printed."""
        if answer is None or answer.status != 200:
            return None
        result = answer.json
        self.results.append(result)
        if result["status"] == "ok" and result["stdout"] != stdout:
            self.wrong.append(f"it printed {result['stdout']!r}, and not {stdout!r}")
        if result["status"] not in ("ok", "lost", "error") or result["status"] == "error" and not result["error"] and not result["stderr"]:
            self.wrong.append(f"it is {result['status']}: {result['limit']} {result['error']}")
        return result

    def once(self, what, body, stdout, wants=(200,)):
        """With a key, again and again until there is an answer: it is always the same execution."""
        key = f"{self.name}-{what}"
        for _ in range(3):
            answer = self.service.ask("POST", "/v1/runs", body, headers={"Idempotency-Key": key})
            if answer is None or answer.status >= 500 or answer.status == 429:
                time.sleep(0.3)
                continue
            for run in re.findall("run_[0-9a-f]{32}", answer.body.decode()):
                self.keys.setdefault(key, set()).add(run)
            if answer.status not in (*wants, 409, 410):
                self.wrong.append(f"{what}: {answer.status} {answer.body[:300]!r}")
            return self.take(answer, stdout)
        return None

    def outside(self):
        token = f"{self.name}x"
        self.hits.append(token)
        result = self.once("outside", outside(token), "here\n")
        if result and result["status"] == "ok" and Upstream.seen[token] != 1:
            self.wrong.append(f"{token} came {Upstream.seen[token]} times")

    def artifact(self):
        text = f"{self.name} " * 500
        result = self.once("artifact", RUN | {"code": f"open('made', 'w').write({text!r}); print('made')"}, "made\n")
        if not result or result["status"] != "ok":
            return
        sha = hashlib.sha256(text.encode()).hexdigest()
        if [one["sha256"] for one in result["artifacts"]] != [sha]:
            self.wrong.append(f"artifacts {result['artifacts']}")
        got = self.ask("GET", f"/v1/artifacts/{sha}")
        if got and got.body != text.encode():
            self.wrong.append(f"{len(got.body)} other bytes as artifact")
        self.ask("GET", f"/v1/receipts/{result['receipt']}")

    def approved(self):
        request = RUN | {"policy": "asked", "code": f"print('{self.name}')"}
        asked = self.ask("POST", "/v1/runs", request, wants=(202, 200))
        if not asked:
            return
        if asked.status == 200:  # its receipt could not be written
            if (asked.json["status"], asked.json["error"]["name"]) != ("lost", "GloveboxError"):
                self.wrong.append(f"a run that needs an approval: {asked.body[:300]!r}")
            return
        place = f"/v1/approvals/{asked.json['approval']}:decide"
        decided = self.service.ask("POST", place, {"decision": "approve"}, key=self.service.approver)
        answer = self.service.ask("POST", "/v1/runs", request)
        if answer and answer.status == 200:
            self.take(answer, f"{self.name}\n")
            if not decided or decided.status >= 500:
                return  # it may have been decided, for all that its answer did not come
            again = self.service.ask("POST", "/v1/runs", request)
            if again and again.status == 200 and (again.json["error"] or {}).get("name") != "ApprovalNeeded":
                self.wrong.append("an approval for once ran twice")

    def session(self):
        made = self.ask("POST", "/v1/sessions", {"policy": "minimal"}, wants=(201,))
        if not made:
            return
        place, data = f"/v1/sessions/{made.json['id']}", os.urandom(9000)
        code = f"x = '{self.name}'; print(x)"
        self.take(self.service.ask("POST", f"{place}/contexts/python/run", {"code": code}), f"{self.name}\n")
        put = self.service.ask("PUT", f"{place}/files/data", data)
        got = self.service.ask("GET", f"{place}/files/data")
        if put and put.status == 200 and got and got.status == 200 and got.body != data:
            self.wrong.append(f"{len(got.body)} other bytes in a file")
        if put and put.status == 200 and got and got.status == 404:
            self.wrong.append("a file that was put is not there")
        begun = self.service.ask("POST", f"{place}/processes", {"command": ["echo", self.name]})
        if begun and begun.status == 201:
            self.service.ask("GET", f"{place}/processes/{begun.json['id']}?wait=2")
        self.service.ask("POST", f"{place}/checkpoints", {})
        for _ in range(4):
            gone = self.service.ask("DELETE", place)
            if gone and gone.status < 500:
                break
            time.sleep(0.4)

    def look(self):
        for path in ("/healthz", "/readyz", "/v1/runs", "/v1/receipts", "/v1/status", "/v1/log/checkpoint"):
            self.service.ask("GET", path)

    def play(self):
        for part in (self.outside, self.artifact, self.approved, self.session, self.look):
            part()
        return self


def until(look, seconds=BACK_S):
    """What look() gives when it is true; else its last."""
    end = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


class Drive:
    """Plays stories over one service, and holds what must be held after each."""

    def __init__(self, folder):
        self.glovebox = Glovebox(folder)
        state_of_its_own(self.glovebox)
        let_others_in(folder)
        self.plans = Plans(folder / "plans")
        self.upstream = WebServer(("127.0.0.1", 0), Upstream)
        threading.Thread(target=self.upstream.serve_forever, daemon=True).start()
        self.service = Faulty(self.glovebox, self.plans, self.upstream.server_address[1])
        self.number, self.deaths, self.results, self.told = 0, 0, [], collections.Counter()
        self.story().play()
        before = {program: plan.counts for program, plan in self.plans.of.items()}
        self.story().play()
        self.counts = {program: [b - a for a, b in zip(before[program], plan.counts, strict=True)]
                       for program, plan in self.plans.of.items()}
        self.settle()
        self.kept = descriptors(self.service.daemon)

    def story(self):
        self.number += 1
        return Story(self.service, f"s{self.number}")

    def slots(self):
        """True when none is held but those of the pools, and nothing is being built."""
        self.last = self.service.gauges()
        return self.last and self.last["slots_in_use"] == self.last["pool_idle"] and not self.last["slots_stuck"] \
            and not self.last["pool_building"]

    def end_sessions(self):
        """Also those whose making was not answered."""
        answer = self.service.ask("GET", "/v1/sessions")
        for row in answer.json["sessions"] if answer and answer.status == 200 else []:
            self.service.ask("DELETE", f"/v1/sessions/{row['id']}")

    def runs_outside(self):
        """glovebox-egress, too, is back."""
        self.number += 1
        answer = self.service.ask("POST", "/v1/runs", outside(f"s{self.number}y"))
        self.said = answer and (answer.status, answer.body[:300])
        return answer and answer.status == 200 and answer.json["stdout"] == "here\n"

    def settle(self):
        """What is wrong once the fault is over."""
        wrong = []
        health = until(lambda: (self.service.health() or (0,))[0] == 200)
        if not health:
            wrong.append(f"after {BACK_S} s health is {self.service.health()}")
        self.end_sessions()
        if not until(self.runs_outside):
            wrong.append(f"a run afterwards: {self.said}, and health is {self.service.health()}")
        if not until(self.slots):
            wrong.append(f"after {BACK_S} s slots are {self.last}")
        if not until(self.all_recorded):
            wrong.append(f"without one receipt each: {self.unrecorded}")
        return wrong

    def all_recorded(self):
        self.service.read_log()
        begun, recorded = self.service.begun, self.service.recorded
        self.unrecorded = {name: (begun[name], recorded[name]) for name in begun | recorded
                           if recorded[name] != 1 or begun[name] > 1}
        missing = [result["id"] for result in self.results if result["receipt"] and not recorded[result["id"]]]
        self.unrecorded |= dict.fromkeys(missing, "handed out")
        return not self.unrecorded

    def strike(self, fault):
        """All that is wrong with this fault."""
        log = self.service.log.stat().st_size
        story = self.story()
        self.service.slow.clear()
        self.plans.arm(fault)
        try:
            story.play()
        finally:
            self.plans.disarm()
        plan = self.plans.of[fault.program]
        self.told["struck" if plan.failed else "not met"] += 1
        wrong = story.wrong
        self.results += story.results
        wrong += [f"key {key} ran {len(runs)} times" for key, runs in story.keys.items() if len(runs) > 1]
        wrong += [f"{token} was sent {Upstream.seen[token]} times" for token in story.hits if Upstream.seen[token] > 1]
        wrong += [f"handed out without a receipt: {one}" for one in story.results
                  if not one["receipt"] and (one["stdout"] or one["stderr"] or one["artifacts"] or one["results"])]
        wrong += self.settle() + self.died(log) + self.leaked() + self.service.slow + self.unverified(story.results)
        if wrong:
            where = " < ".join(plan.where()) if plan.failed else ""
            said = self.service.log.read_bytes()[log:].decode(errors="replace")[-2500:]
            wrong = [f"{fault}, {plan.failed} calls, at {where}", *wrong, said]
        return wrong

    def unverified(self, results):
        """What `glovebox receipt verify` says of receipts that were handed out and do not verify."""
        log = self.glovebox.state / "daemon" / "log"
        done = [self.glovebox("receipt", "verify", one["receipt"], "--log", log) for one in results if one["receipt"]]
        return [(each.stdout + each.stderr).decode() for each in done if each.returncode != 0]

    def died(self, log):
        """gloveboxd may end where it has no other way, if it says why; and it is back."""
        until(lambda: self.service.children().get("gloveboxd"))
        pid = self.service.children().get("gloveboxd")
        if pid == self.service.daemon:
            return []
        self.service.daemon, self.kept = pid, None
        self.told["gloveboxd ended"] += 1
        said = self.service.log.read_bytes()[log:].decode(errors="replace")
        until(lambda: self.service.health())
        if not re.search(r"daemon\.\w+ cause=|gloveboxd was ended by signal \d+ \(", said):
            return ["gloveboxd ended, and no line says why"]
        return []

    def leaked(self):
        if self.kept is None:  # another one
            self.story().play()
            until(self.slots)
            self.kept = descriptors(self.service.daemon)
            return []
        if until(lambda: len(descriptors(self.service.daemon)) <= len(self.kept), 5):
            return []
        more = collections.Counter(descriptors(self.service.daemon)) - collections.Counter(self.kept)
        return [f"descriptors stay open: {dict(more)}"]

    def verify_log(self):
        done = self.glovebox("log", "verify", "--json", "--log", self.glovebox.state / "daemon" / "log")
        assert done.returncode == 0 and json.loads(done.stdout)["verified"], done.stdout + done.stderr

    def close(self):
        self.plans.disarm()
        self.service.end()
        self.upstream.shutdown()
        self.upstream.server_close()


@pytest.fixture(name="drive", scope="module")
def drive_(tmp_path_factory):
    drive = Drive(tmp_path_factory.mktemp("faults"))
    yield drive
    drive.close()


def asked_for(kept, counts, number):
    if ONE:
        return [Fault.of(text) for text in ONE.split(";")]
    return [Fault.of(text) for text in kept] + chosen(counts, number, SEED)


def all_of(drive, faults, strike):
    """Each of them, and all that was wrong."""
    print(f"GLOVEBOX_SEED={SEED} GLOVEBOX_FAULTS={COUNT}")
    drive.told.clear()
    wrong = []
    for fault in faults:
        if found := strike(fault):
            wrong.append("\n    ".join(found))
            print(wrong[-1], flush=True)
    print(dict(drive.told))
    drive.verify_log()
    assert not wrong, f"GLOVEBOX_SEED={SEED}\n" + "\n".join(wrong)


def test_a_call_that_fails_costs_one_request_at_most(drive):
    assert sum(count > 0 for count in drive.counts["gloveboxd"]) > 25 and sum(map(bool, drive.counts["glovebox-egress"])) > 5, drive.counts
    all_of(drive, asked_for(KEPT, drive.counts, COUNT), drive.strike)


class TestStartAndEnd:
    """The same while the service starts, and while it ends."""

    def at_start(self, drive, fault):
        service, log = drive.service, drive.service.log.stat().st_size
        once = {"Idempotency-Key": f"start-{drive.number}"}
        drive.number += 1
        def runs():  # a disk whose failure is over is tried again each second
            made = service.ask("POST", "/v1/runs", RUN | {"code": "print(1)"}, headers=once)
            return made if made and made.status != 503 else None
        before = until(runs)
        session = service.ask("POST", "/v1/sessions", {"policy": "minimal"})
        assert before and (before.status, session.status) == (200, 201), (fault, before and before.body, session.body)
        took = service.end()
        wrong = [f"it took {took:.1f} s to end without a fault"] if took > BACK_S else []
        drive.plans.arm(fault)
        ended = service.start_again()
        if not until(lambda: drive.plans.of[fault.program].failed, 0.01 if ended else 0.5):
            drive.told["not met"] += 1
        drive.plans.disarm()
        if ended is None:
            drive.told["served"] += 1
        elif ended is False:
            wrong.append(f"after {2 * BACK_S} s it is not healthy: {service.health()}")
        else:
            drive.told["serve ended"] += 1
            wrong.append(f"serve ended with {ended}")
            if (ended := service.start_again()) is not None:
                raise AssertionError("\n".join(self.with_log(drive, fault, [*wrong, f"the next start, without a fault: {ended}"], log)))
        service.daemon, drive.kept = service.children().get("gloveboxd"), None
        wrong += drive.settle()
        again = service.ask("POST", "/v1/runs", RUN | {"code": "print(1)"}, headers=once)
        if again is None or again.status < 500 and set(re.findall("run_[0-9a-f]{32}", again.body.decode())) != {before.json["id"]}:
            wrong.append(f"a key after the start: {again and (again.status, again.body[:300])}")
        if not (told := service.ask("GET", f"/v1/receipts/{before.json['receipt']}")) or told.status != 200:
            wrong.append(f"an earlier receipt: {told and (told.status, told.body[:200])}")
        told = service.ask("GET", f"/v1/sessions/{session.json['id']}")
        if not told or told.status != 200 or told.json["state"] != "ended":
            wrong.append(f"an earlier session: {told and (told.status, told.body[:200])}")
        return self.with_log(drive, fault, wrong, log)

    def at_end(self, drive, fault):
        service, log = drive.service, drive.service.log.stat().st_size
        story = drive.story()
        slow = threading.Thread(target=lambda: story.once("slow", RUN | {"code": "import time; time.sleep(.4); print('slept')"}, "slept\n"))
        session = service.ask("POST", "/v1/sessions", {"policy": "minimal"})
        slow.start()
        time.sleep(0.2)
        drive.plans.arm(fault)
        took = service.end()
        drive.plans.disarm()
        slow.join()
        drive.results += story.results
        drive.told["struck" if drive.plans.of[fault.program].failed else "not met"] += 1
        wrong = story.wrong + ([f"it took {took:.1f} s to end"] if took > 2 * BACK_S else [])
        if (ended := service.start_again()) is not None:
            wrong.append(f"the next start: {ended}")
        service.daemon, drive.kept = service.children().get("gloveboxd"), None
        wrong += drive.settle()
        told = service.ask("GET", f"/v1/sessions/{session.json['id']}")
        if not told or told.status != 200 or told.json["state"] != "ended":
            wrong.append(f"the session: {told and (told.status, told.body[:200])}")
        return self.with_log(drive, fault, wrong, log)

    def with_log(self, drive, fault, wrong, log):
        plan = drive.plans.of[fault.program]
        if not wrong:
            return []
        return [f"{fault}, {plan.failed} calls, at {' < '.join(plan.where())}", *wrong,
                drive.service.log.read_bytes()[log:].decode(errors="replace")[-2500:]]

    def counted(self, drive, course):
        before = {program: plan.counts for program, plan in drive.plans.of.items()}
        course()
        return {program: [b - a for a, b in zip(before[program], plan.counts, strict=True)]
                for program, plan in drive.plans.of.items()}

    def test_while_it_starts(self, drive):
        drive.service.end()
        counts = self.counted(drive, drive.service.start_again)
        all_of(drive, asked_for(KEPT_AT_START, counts, (COUNT + 1) // 2), lambda fault: self.at_start(drive, fault))

    def test_while_it_ends(self, drive):
        counts = self.counted(drive, drive.service.end)
        drive.service.start_again()
        all_of(drive, asked_for([], counts, (COUNT + 3) // 4), lambda fault: self.at_end(drive, fault))

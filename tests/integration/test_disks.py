"""Disks that lose power, are full, or fail: promised data is there afterwards, and nothing runs that cannot be
recorded."""

import concurrent.futures
import hashlib
import json
import os
import random
import re
import subprocess
import time

import pytest
from conftest import Glovebox
from disk_rig import disk
from serving import Serving, let_others_in, with_policies

CUTS = int(os.environ.get("GLOVEBOX_POWER_CUTS", "3"))
ARTIFACT_PROMISE_S, RECEIPT_PROMISE_S = 4, 1  # 1 s and 50 ms, and the time of a busy disk


def serve_from(glovebox, folder, *arguments, env=None):
    """A service whose state lies there."""
    state = folder / "state"
    state.mkdir(exist_ok=True)
    if not (state / "templates").is_symlink():
        (state / "templates").symlink_to(os.path.realpath(glovebox.templates))
    glovebox.state = state
    return Serving(glovebox, *arguments, tcp=False, env=env)


@pytest.fixture
def glovebox(tmp_path):
    made = Glovebox(tmp_path)
    made.templates = made.state / "templates"
    return made


def run(serving, text):
    return serving.call("POST", "/v1/runs", {"command": ["sh", "-c", f"printf '%s' '{text}' > made"], "policy": "minimal"})


def health(serving):
    answer = serving.call("GET", "/healthz")
    return answer.status, answer.json["cause"]


def kill(serving):
    """All of it at once, as the power does."""
    victims = [serving.process.pid, *serving.children().values()]
    for pid in victims:
        os.kill(pid, 9)
    serving.process.wait()


def wait_until(what, seconds=30):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.1)


class Decisions:
    """What may not come back after a cut: an approval that was used, one that was taken back, a key that was revoked; and
    what may not be lost: what an Idempotency-Key began."""

    def __init__(self, serving, cut):
        self.cut = cut
        if cut == 0:
            serving.key("--tenant", "t", "--scope", "run")  # the log begins
        self.asker = serving.key("--tenant", "t", "--scope", "run")
        self.approver = serving.key("--tenant", "t", "--scope", "approve")
        self.revoked = serving.key("--tenant", "t", "--scope", "run")
        self.used, self.taken_back = (self.decide(serving, code) for code in ("1", "2"))
        assert self.ask(serving, "1").status == 200, "it was approved, and is used"
        assert self.post(serving, self.taken_back, {"decision": "revoke"}).status == 200
        assert serving.glovebox("key", "revoke", self.revoked["id"]).returncode == 0
        self.begun = self.once(serving).json["id"]

    def ask(self, serving, code):
        request = {"code": f"print({self.cut}, {code})", "language": "python", "policy": "asked"}
        return serving.call("POST", "/v1/runs", request, key=self.asker, tcp=False)

    def post(self, serving, approval, decision):
        return serving.call("POST", f"/v1/approvals/{approval}:decide", decision, key=self.approver, tcp=False)

    def decide(self, serving, code):
        asked = self.ask(serving, code)
        assert asked.status == 202, asked.body
        assert self.post(serving, asked.json["approval"], {"decision": "approve"}).status == 200
        return asked.json["approval"]

    def once(self, serving):
        return serving.call("POST", "/v1/runs", {"code": "print(1)", "language": "python", "policy": "minimal"},
                            headers={"Idempotency-Key": f"cut-{self.cut}"})

    def check(self, serving):
        for code, before in (("1", self.used), ("2", self.taken_back)):
            again = self.ask(serving, code)
            assert again.status == 202 and again.json["approval"] != before, (code, again.body)
            # 64 may wait at once, for all keys together
            assert self.post(serving, again.json["approval"], {"decision": "deny"}).status == 200
        assert serving.call("GET", "/v1/runs", key=self.revoked, tcp=False).status == 401
        assert serving.call("GET", "/v1/runs", key=self.asker, tcp=False).status == 200
        again = self.once(serving)
        said = set(re.findall("run_[0-9a-f]{32}", again.body.decode()))
        assert said == {self.begun} and (again.status >= 400 or again.json["status"] == "lost"), ("it ran twice", again.body)


def test_power_cuts_lose_nothing_that_was_promised(glovebox):
    """Artifacts that are there have the hash of their name; those older than the promise are there, and so are receipts,
    decisions, revocations and Idempotency-Keys."""
    chance = random.Random(16)
    let_others_in(glovebox.folder)
    env = with_policies(glovebox, {"asked": "approval: {when: [always], scopes: [once]}"})
    with disk(256 + 8 * CUTS) as drive:  # artifacts stay
        for cut in range(CUTS):
            print(f"cut {cut + 1} of {CUTS}", flush=True)
            serving = serve_from(glovebox, drive.folder, env=env)
            decisions = Decisions(serving, cut)
            made = []
            end = time.monotonic() + ARTIFACT_PROMISE_S + 1 + chance.random()
            while time.monotonic() < end:
                text = f"{cut} {len(made)} " + "x" * chance.randrange(20000)
                answer = run(serving, text)
                assert answer.status == 200 and answer.json["status"] == "ok", answer.body
                made.append((time.monotonic(), text, answer.json["receipt"]))
                time.sleep(0.05)
            dark = time.monotonic()  # or a moment later: what is older than that was promised
            drive.cut_power()
            kill(serving)
            drive.unmount()
            drive.mount()
            with serve_from(glovebox, drive.folder, env=env) as serving:
                decisions.check(serving)
                for at, text, receipt in made:
                    sha = hashlib.sha256(text.encode()).hexdigest()
                    answer = serving.call("GET", f"/v1/artifacts/{sha}")
                    assert answer.status in (200, 404), answer.body
                    assert answer.status == 404 or answer.body == text.encode(), "other bytes than the hash"
                    assert answer.status == 200 or dark - at < ARTIFACT_PROMISE_S, f"lost {dark - at} s after its answer"
                    known = serving.call("GET", f"/v1/receipts/{receipt}").status
                    assert known == 200 or dark - at < RECEIPT_PROMISE_S, f"its receipt was lost {dark - at} s after the answer"
                text = made[-1][1]
                assert run(serving, text).json["status"] == "ok", "made again"
                answer = serving.call("GET", f"/v1/artifacts/{hashlib.sha256(text.encode()).hexdigest()}")
                assert answer.status == 200 and answer.body == text.encode(), "mended"
            report = glovebox("log", "verify", "--json", "--log", drive.folder / "state" / "daemon" / "log")
            assert report.returncode == 0 and json.loads(report.stdout)["verified"], report.stdout + report.stderr


def test_a_mount_namespace_of_another_process_does_not_hold_the_disk():
    """One that was made while the disk was mounted, as those of a service of the machine are."""
    other = subprocess.Popen(["sh", "-c", "read -r now; exec unshare --mount sh -c 'echo made; exec sleep 60'"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        with disk(64) as drive:
            other.stdin.write(b"now\n")
            other.stdin.flush()
            assert other.stdout.readline() == b"made\n"
            begin = time.monotonic()
            drive.unmount()
            assert time.monotonic() - begin < 5
            drive.mount()
    finally:
        other.kill()
        other.communicate()


def test_a_disk_that_refuses_writes_is_reported_and_no_run_starts(glovebox):
    with disk(64) as drive, serve_from(glovebox, drive.folder) as serving:
        assert run(serving, "before").json["status"] == "ok" and health(serving) == (200, None)
        subprocess.run(["mount", "-o", "remount,abort", drive.folder], check=False)
        refused = run(serving, "behind")
        assert refused.status == 503, refused.body
        status, cause = health(serving)
        assert status == 503 and "nothing new is run" in cause, cause
        assert serving.call("POST", "/v1/sessions", {"policy": "minimal"}).status == 503
        assert serving.process.poll() is None


def test_a_full_disk_is_reported_and_no_run_starts_until_there_is_space(glovebox):
    with disk(64) as drive, serve_from(glovebox, drive.folder) as serving:
        assert run(serving, "before").json["status"] == "ok"
        filler = drive.fill()
        status, cause = health(serving)
        assert status == 503 and ("full" in cause or "No space" in cause), cause
        assert run(serving, "behind").status == 503
        assert serving.call("POST", "/v1/sessions", {"policy": "minimal"}).status == 503
        filler.unlink()
        wait_until(lambda: health(serving) == (200, None))
        assert run(serving, "again").json["status"] == "ok"


def test_a_disk_without_inodes_is_reported_and_no_run_starts(glovebox):
    with disk(64, "-N", "256") as drive, serve_from(glovebox, drive.folder) as serving:
        assert run(serving, "before").json["status"] == "ok"
        (drive.folder / "many").mkdir()
        with pytest.raises(OSError, match="No space"):
            for number in range(1000):
                (drive.folder / "many" / str(number)).touch()
        assert run(serving, "behind").status == 503 and health(serving)[0] == 503
        for file in (drive.folder / "many").iterdir():
            file.unlink()
        wait_until(lambda: health(serving)[0] == 200)
        assert run(serving, "again").json["status"] == "ok"


def test_a_killed_gloveboxd_comes_back_when_a_full_disk_has_room(glovebox):
    with disk(64) as drive, serve_from(glovebox, drive.folder) as serving:
        session = serving.call("POST", "/v1/sessions", {"policy": "minimal"})
        assert session.status == 201, session.body
        filler = drive.fill()
        (drive.folder / "state" / "daemon" / "log" / "reserve").unlink()  # used up
        drive.fill()
        os.kill(serving.children()["gloveboxd"], 9)
        time.sleep(8)  # five tries, and more
        assert serving.process.poll() is None, serving.log.read_text()
        filler.unlink()
        (drive.folder / "filler").unlink(missing_ok=True)
        wait_until(lambda: answers_well(serving))
        assert run(serving, "again").json["status"] == "ok"
        assert serving.call("GET", f"/v1/sessions/{session.json['id']}").json["state"] == "ended", "the list of sessions is whole"


def leave_files(serving, script):
    """Asks in a thread for a run that waits for two seconds, and then leaves files; what its beginning writes is written."""
    pool = concurrent.futures.ThreadPoolExecutor(1)
    asked = pool.submit(serving.call, "POST", "/v1/runs", {"command": ["sh", "-c", f"sleep 2; {script}"], "policy": "minimal"})
    pool.shutdown(wait=False)
    wait_until(lambda: serving.call("GET", "/v1/runs?status=running").json["runs"])
    time.sleep(0.5)
    return asked


def test_while_the_disk_is_frozen_only_runs_with_files_wait(glovebox):
    with disk(64) as drive, serve_from(glovebox, drive.folder) as serving:
        asked = leave_files(serving, "for i in $(seq 40); do echo $i > f$i; done; head -c 3000000 /dev/urandom > large")
        subprocess.run(["fsfreeze", "--freeze", drive.folder], check=True)
        try:
            end = time.monotonic() + 4
            while time.monotonic() < end:
                begin = time.monotonic()
                assert serving.call("GET", "/v1/runs").status == 200
                assert time.monotonic() - begin < 1
                time.sleep(0.1)
            assert not asked.done(), "no answer names a file that is not there"
        finally:
            subprocess.run(["fsfreeze", "--unfreeze", drive.folder], check=True)
        result = asked.result(30).json
        assert result["status"] == "ok" and len(result["artifacts"]) == 41, result
        for artifact in result["artifacts"]:
            assert hashlib.sha256(serving.call("GET", f"/v1/artifacts/{artifact['sha256']}").body).hexdigest() == artifact["sha256"]


def test_a_run_whose_files_find_no_room_is_lost_and_names_those_that_are_there(glovebox):
    with disk(64) as drive, serve_from(glovebox, drive.folder) as serving:
        asked = leave_files(serving, "for i in $(seq 9); do head -c 300000 /dev/urandom > $i; done")
        filler = drive.fill()
        with open(filler, "r+b") as file:
            file.truncate(os.path.getsize(filler) - (5 << 20))  # some fit, beside what is reserved for root
        result = asked.result(30).json
        assert result["status"] == "lost" and "No space left" in json.dumps(result), result
        assert 0 < len(result["artifacts"]) < 9, result
        for artifact in result["artifacts"]:
            assert hashlib.sha256(serving.call("GET", f"/v1/artifacts/{artifact['sha256']}").body).hexdigest() == artifact["sha256"]
        filler.unlink()


def answers_well(serving):
    try:
        return health(serving)[0] == 200
    except OSError:
        return False

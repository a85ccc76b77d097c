"""One Idempotency-Key begins one thing, of every kind, whatever happens in between: the six ways in which one began two
were a service beside one that drains, two services on one state, another tenant's keys, a power cut, and the clock's
steps both ways."""

import fcntl
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import threading
import time

import pytest
from conftest import BUILD, Glovebox
from serving import Serving, let_others_in, state_of_its_own

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "soak"))

from preloaded_build import preloaded_build  # noqa: E402

pytestmark = pytest.mark.usefixtures("python_template")

RUN = {"code": "import os; print(os.urandom(8).hex())", "language": "python", "policy": "minimal"}
EXT4_IOC_SHUTDOWN, NO_LOG_FLUSH = 0x8004587D, struct.pack("I", 2)


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("once"))
    state_of_its_own(glovebox)
    with Serving(glovebox, slots=12) as service:
        yield service


def key(text=None):
    return {"Idempotency-Key": text or os.urandom(8).hex()}


def ask(service, headers, body=None):
    return service.call("POST", "/v1/runs", body or RUN, headers=headers)


def is_second_time(answer, run):
    """What a later daemon says of a run that is over: its id and receipt, or that it was lost; never a new one."""
    said = answer.body.decode()
    return set(re.findall("run_[0-9a-f]{32}", said)) == {run} and (answer.status >= 400 or answer.json["status"] == "lost")


class TestKinds:
    def session(self, service, **headers):
        return service.call("POST", "/v1/sessions", {"policy": "minimal"}, headers=headers or None)

    def test_cells(self, service):
        place = f"/v1/sessions/{self.session(service).json['id']}/contexts/python/run"
        once = key()
        cells = [service.call("POST", place, {"code": "n = globals().get('n', 0) + 1; print(n)"}, headers=once)
                 for _ in range(3)]
        assert [cell.json["stdout"] for cell in cells] == ["1\n"] * 3
        assert [cell.headers.get("Idempotency-Replayed") for cell in cells] == [None, "true", "true"]
        assert service.call("POST", place, {"code": "print(n)"}).json["stdout"] == "1\n"
        assert service.call("POST", place, {"code": "print(n)"}, headers=once).status == 409, "another body"
        elsewhere = f"/v1/sessions/{self.session(service).json['id']}/contexts/python/run"
        assert service.call("POST", elsewhere, {"code": "n = globals().get('n', 0) + 1; print(n)"}, headers=once).status == 409

    def test_a_cell_after_its_session(self, service):
        session = self.session(service).json["id"]
        place, once = f"/v1/sessions/{session}/contexts/python/run", key()
        first = service.call("POST", place, {"code": "print(1)"}, headers=once)
        service.call("DELETE", f"/v1/sessions/{session}")
        assert service.call("POST", place, {"code": "print(1)"}, headers=once).json == first.json
        assert service.call("POST", place, {"code": "print(1)"}, headers=key()).status == 409

    def test_sessions(self, service):
        once = key()
        first, again = self.session(service, **once), self.session(service, **once)
        assert (first.status, again.status) == (201, 201) and first.json["id"] == again.json["id"]
        assert again.headers["Idempotency-Replayed"] == "true"
        service.call("DELETE", f"/v1/sessions/{first.json['id']}")
        ended = self.session(service, **once)
        assert ended.status == 201 and (ended.json["id"], ended.json["state"]) == (first.json["id"], "ended")

    def test_sessions_at_the_same_time(self, service):
        once, told = key(), []
        callers = [threading.Thread(target=lambda: told.append(self.session(service, **once))) for _ in range(6)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert len({answer.json["id"] for answer in told}) == 1

    def test_a_session_that_was_refused_takes_no_key(self, service):
        once = key()
        assert service.call("POST", "/v1/sessions", {"policy": "no-such"}, headers=once).status == 404
        assert self.session(service, **once).status == 201

    def test_branches(self, service):
        place, once = f"/v1/sessions/{self.session(service).json['id']}", key()
        service.call("POST", f"{place}/contexts/python/run", {"code": "x = 1"})
        first, again = (service.call("POST", f"{place}/branch", {}, headers=once) for _ in range(2))
        assert (first.status, again.status) == (201, 201) and first.json["id"] == again.json["id"]

    def test_processes(self, service):
        place, once = f"/v1/sessions/{self.session(service).json['id']}", key()
        command = {"command": ["sh", "-c", "echo x >> /workspace/n; sleep 60"]}
        first, again = (service.call("POST", f"{place}/processes", command, headers=once) for _ in range(2))
        assert (first.status, again.status) == (201, 201) and first.json["id"] == again.json["id"]
        assert until(lambda: (a := service.call("GET", f"{place}/files/n")).status == 200 and a.body) == b"x\n"

    @pytest.mark.parametrize("path", ["contexts", "checkpoints", "contexts/python/restart"])
    def test_an_idempotency_key_that_would_be_ignored_is_refused(self, service, path):
        place = f"/v1/sessions/{self.session(service).json['id']}/{path}"
        refused = service.call("POST", place, {}, headers=key())
        assert refused.status == 400 and "has no effect here" in refused.json["error"]["message"]

    def test_what_may_be_done_twice_takes_any_key(self, service):
        place = f"/v1/sessions/{self.session(service).json['id']}"
        assert service.call("POST", f"{place}/files:list", {"path": "/workspace"}, headers=key()).status == 200
        assert service.call("POST", f"{place}/contexts/python/interrupt", headers=key()).status in (200, 404)


def beside(service, tmp_path):
    """A service of its own on the same state."""
    (tmp_path / "beside").mkdir(exist_ok=True)
    let_others_in(tmp_path / "beside")
    glovebox = Glovebox(tmp_path / "beside")
    glovebox.state = service.glovebox.state
    return Serving(glovebox, slots=4)


@pytest.fixture(name="own")
def own_(glovebox):
    state_of_its_own(glovebox)
    return glovebox


def until(look, seconds=60):
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.1)
    return found


class TestTwoServices:
    def test_the_second_one_refuses_keys_until_it_has_them(self, own, tmp_path):
        once = key("o1")
        with Serving(own) as first:
            run = ask(first, once).json["id"]
            with beside(first, tmp_path) as second:
                refused = ask(second, once)
                assert refused.status == 503 and refused.headers["Retry-After"] == "1", refused.body
                assert refused.json["error"]["retryable"] is True
                assert ask(second, key()).status == 503 and ask(second, None).status == 200
                session = second.call("POST", "/v1/sessions", {"policy": "minimal"}).json["id"]
                first.process.kill()
                first.process.wait()
                assert is_second_time(until(lambda: (a := ask(second, once)).status != 503 and a), run)
                assert ask(second, key()).status == 200
                os.kill(second.children()["gloveboxd"], signal.SIGKILL)
                ended = until(lambda: tombstone(second, session))
                assert ended["ended"]["why"] == "daemon", "it was noted when the first had gone"

    def test_one_that_ends_when_idle_makes_room(self, own, tmp_path):
        """As a program's private server does for `glovebox serve`; not while it is in use."""
        once = key("o3")
        with Serving(own, "--idle-exit", "300") as first:
            run = ask(first, once).json["id"]
            session = first.call("POST", "/v1/sessions", {"policy": "minimal"}).json["id"]
            with beside(first, tmp_path) as second:
                assert ask(second, once).status == 503
                time.sleep(3)
                assert first.process.poll() is None, "a session is use"
                assert first.call("DELETE", f"/v1/sessions/{session}").status == 200
                assert first.process.wait(30) == 0
                assert is_second_time(until(lambda: (a := ask(second, once)).status != 503 and a), run)

    def test_one_that_drains(self, own, tmp_path):
        """Its socket is free at once, its run goes on; what it began is never begun again."""
        once, told = key("o2"), []
        with Serving(own) as first:
            session = first.call("POST", "/v1/sessions", {"policy": "minimal"}).json["id"]
            over = ask(first, key("over")).json["id"]
            slow = threading.Thread(target=lambda: told.append(
                ask(first, once, RUN | {"code": "import time; time.sleep(8); print('whole')"})))
            slow.start()
            until(lambda: [row for row in first.call("GET", "/v1/runs?status=running").json["runs"]])
            first.process.send_signal(signal.SIGTERM)
            with beside(first, tmp_path) as second:
                assert ask(second, once).status == 503
                assert until(lambda: tombstone(second, session))["ended"]["why"] == "stopped"
                slow.join()
                assert told[0].json["stdout"] == "whole\n"
                assert is_second_time(until(lambda: (a := ask(second, key("over"))).status != 503 and a), over)
                again = ask(second, once, RUN | {"code": "import time; time.sleep(8); print('whole')"})
                assert is_second_time(again, told[0].json["id"]), again.body


def tombstone(service, session):
    try:
        found = service.call("GET", f"/v1/sessions/{session}").json
    except OSError:
        return None
    return found if found.get("state") == "ended" else None


class TestClock:
    @pytest.mark.parametrize("step", [-3600, 25 * 3600])
    def test_a_step_of_the_clock_forgets_nothing(self, own, step):
        stepped = own.folder / "step"
        stepped.write_text("0")
        stepped.chmod(0o644)
        own.program = str(preloaded_build(BUILD, own.folder, "step_clock.so", STEP_CLOCK=stepped) / "glovebox")
        with Serving(own) as first:
            run = ask(first, key("o3")).json["id"]
        stepped.write_text(str(step))
        with Serving(own) as second:
            shown = re.search(r"^glovebox_start_time_seconds (\d+)", second.call("GET", "/metrics").body.decode(), re.MULTILINE)
            assert abs(int(shown[1]) - time.time() - step) < 600, "its clock has been put"
            assert is_second_time(ask(second, key("o3")), run)


@pytest.fixture(name="disk")
def disk_(glovebox):
    """The state on a file system of its own, which can lose its power. Its device is memory: syncs do not wait for the
    disk of the machine, whatever else is written there."""
    image, place = pathlib.Path(f"/dev/shm/glovebox-once-{os.getpid()}"), glovebox.folder / "disk"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    place.mkdir()
    let_others_in(glovebox.folder)
    subprocess.run(["mkfs.ext4", "-q", "-O", "^metadata_csum", image], check=True)
    mounted = subprocess.run(["mount", "-o", "loop", image, place], capture_output=True, check=False)
    if mounted.returncode != 0:
        image.unlink()
        pytest.skip(f"a loop device cannot be mounted here: {mounted.stderr.decode().strip()}")
    place.chmod(0o755)
    state = place / "state"
    state.mkdir()
    (state / "templates").symlink_to(glovebox.state / "templates")
    glovebox.state = state
    yield image, place
    subprocess.run(["umount", "-l", place], check=False)
    image.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system takes root")
@pytest.mark.parametrize("mode", ["group", "each"])
def test_a_power_cut(glovebox, disk, mode):
    """Keys older than the promise of --log-sync are there: 50 ms, or none at all. Without a record of its run nobody
    says that it never began."""
    image, place = disk
    first = Serving(glovebox, "--log-sync", mode)
    runs = {}
    for number in range(20):
        runs[f"k{number}"] = ask(first, key(f"k{number}")).json["id"]
    time.sleep(1 if mode == "group" else 0)
    handle = os.open(place, os.O_RDONLY)
    fcntl.ioctl(handle, EXT4_IOC_SHUTDOWN, NO_LOG_FLUSH)
    os.close(handle)
    first.process.kill()
    first.process.wait()
    until(lambda: subprocess.run(["umount", place], capture_output=True, check=False).returncode == 0)
    subprocess.run(["mount", "-o", "loop", image, place], check=True)
    with Serving(glovebox, "--log-sync", mode) as second:
        answers = {name: ask(second, key(name)) for name in runs}
        wrong = {name: answer.body for name, answer in answers.items() if not is_second_time(answer, runs[name])}
        assert not wrong

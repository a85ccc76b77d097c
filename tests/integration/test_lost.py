"""gloveboxd itself is killed while runs are under way: the next daemon answers requests by the id of the run or
by the Idempotency-Key with `lost` and its receipt, and nothing runs twice."""

import contextlib
import json
import os
import pathlib
import signal
import threading
import time

import pytest
from fake_daemon import FakeDaemon, chunk, event
from serving import Serving, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")

SLEEPER = {"code": "import time\nprint('begun', flush=True)\ntime.sleep(60)", "language": "python", "policy": "minimal"}


@pytest.fixture
def service(glovebox):
    state_of_its_own(glovebox)
    with Serving(glovebox) as serving:
        yield serving


def events(response, until):
    """Events of a stream up to the one with this name; what ends without it raises."""
    name, found = None, []
    for line in response:
        word, _, rest = line.decode().rstrip("\n").partition(": ")
        if word == "event":
            name = rest
        elif word == "data":
            found.append((name, json.loads(rest)))
            if name == until:
                return found
    raise AssertionError(f"the stream ended: {found}")


def kill_daemon(service):
    dead = service.children()["gloveboxd"]
    os.kill(dead, signal.SIGKILL)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            if service.children().get("gloveboxd", dead) != dead and service.call("GET", "/healthz").status == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError(service.log.read_text())


def control_groups(pid):
    """Where the process is, of all controllers."""
    found = []
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        found += [folder for kind in kinds.split(",") if (folder := pathlib.Path(f"/sys/fs/cgroup/{kind}{path}")).exists()]
    return list(dict.fromkeys(found))


def children_of(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def remove_groups(service):
    """As a service with a /run of its own does that takes them for left over, and then ends."""
    spawner = service.children()["glovebox-spawner"]
    os.kill(spawner, signal.SIGSTOP)
    try:
        holders = children_of(spawner)
        groups = {folder for holder in holders for folder in control_groups(holder) if "holders-" in folder.name}
        for holder in holders:
            os.kill(holder, signal.SIGKILL)
        end = time.monotonic() + 10
        while groups and time.monotonic() < end:
            for folder in list(groups):
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    groups.remove(folder)
        assert not groups, groups
        return holders
    finally:
        os.kill(spawner, signal.SIGCONT)


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's groups lie elsewhere")
def test_control_groups_that_another_service_has_removed_are_made_again(service):
    assert service.run("print(1)").json["stdout"] == "1\n"
    session = service.call("POST", "/v1/sessions", {"policy": "minimal"}).json["id"]
    if not remove_groups(service):
        pytest.skip("there are no control groups")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            answer = service.run("print(2)")
            if answer.status == 200 and answer.json["stdout"] == "2\n":
                break
        time.sleep(0.1)
    said = service.log.read_text()
    assert answer.status == 200 and answer.json["stdout"] == "2\n", said
    assert said.count("another service has removed our control groups") == 1 and "starting both again" in said, said
    assert {"cgroup_memory", "cgroup_pids"} <= set(answer.json["isolation"]["walls"]), answer.json
    assert service.call("GET", f"/v1/sessions/{session}").json["state"] == "ended"


def test_a_run_that_was_open_is_lost_and_not_unknown(service):
    stream = service.open("POST", "/v1/runs", SLEEPER, headers={"Accept": "text/event-stream"})
    run = events(stream, "stdout")[0][1]["id"]
    kill_daemon(service)
    with pytest.raises(AssertionError):
        events(stream, "end")
    answer = service.call("GET", f"/v1/runs/{run}?wait=5")
    result = answer.json
    assert answer.status == 200, result
    assert (result["id"], result["status"], result["fault"]) == (run, "lost", "glovebox")
    assert "gloveboxd ended" in result["error"]["value"]
    assert result["policy"]["name"] == "minimal"
    assert service.call("GET", f"/v1/receipts/{result['receipt']}").status == 200
    told = events(service.open("GET", f"/v1/runs/{run}/events"), "end")
    assert told == [("end", result)]
    assert service.call("GET", f"/v1/runs/{run}/artifacts.zip").status == 404


def test_a_service_that_has_served_is_not_given_up(service):
    """However often it is killed; one that never came to serve is, after five tries."""
    for _ in range(7):
        kill_daemon(service)
    assert service.process.poll() is None
    result = service.run("print(1)").json
    assert result["stdout"] == "1\n", (result["status"], result["error"], result["limit"])


def test_what_came_to_its_end_is_known_by_its_receipt(service):
    result = service.run("print(1)").json
    kill_daemon(service)
    answer = service.call("GET", f"/v1/runs/{result['id']}")
    assert answer.status == 404
    assert result["receipt"] in answer.json["error"]["message"]
    assert "(ok)" in answer.json["error"]["message"]


def test_the_same_idempotency_key_gives_the_same_run(service):
    headers = {"Idempotency-Key": "lost-1", "Prefer": "respond-async"}
    first = service.call("POST", "/v1/runs", SLEEPER, headers=headers)
    assert first.status == 202
    kill_daemon(service)
    again = service.call("POST", "/v1/runs", SLEEPER, headers={"Idempotency-Key": "lost-1"})
    assert again.status == 200, again.json
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (again.json["id"], again.json["status"]) == (first.json["id"], "lost")
    other = service.call("POST", "/v1/runs", SLEEPER | {"args": ["x"]}, headers={"Idempotency-Key": "lost-1"})
    assert other.status == 409


def test_a_finished_run_is_not_run_again_for_its_key(service):
    request = SLEEPER | {"code": "print(2)"}
    first = service.call("POST", "/v1/runs", request, headers={"Idempotency-Key": "lost-2"})
    assert first.json["status"] == "ok"
    kill_daemon(service)
    again = service.call("POST", "/v1/runs", request, headers={"Idempotency-Key": "lost-2"})
    assert again.status == 409, again.json


def test_a_refused_request_leaves_its_key_free(service):
    headers = {"Idempotency-Key": "lost-3"}
    assert service.call("POST", "/v1/runs", {"code": "1", "policy": "none"}, headers=headers).status == 404
    assert service.run("print(3)").json["stdout"] == "3\n"
    good = service.call("POST", "/v1/runs", SLEEPER | {"code": "print(3)"}, headers=headers)
    assert good.json["stdout"] == "3\n"


def test_the_library_resumes_and_reports_the_loss(service):
    told = []

    def run():
        told.append(service.glovebox("run", "--daemon", service.socket, "--json", "--policy", "minimal",
                                     "-c", SLEEPER["code"]))

    thread = threading.Thread(target=run)
    thread.start()
    end = time.monotonic() + 20
    while time.monotonic() < end and "running" not in json.dumps(service.call("GET", "/v1/runs?status=running").json):
        time.sleep(0.05)
    kill_daemon(service)
    thread.join()
    result = json.loads(told[0].stdout)
    assert told[0].returncode == 125
    assert result["status"] == "lost"
    assert b"gloveboxd ended while this run was open" in told[0].stderr


def test_a_service_that_stays_away_is_named(glovebox):
    """By the run if it is known, else by what there is to do."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    begun = head + chunk(event("started", {"id": "run_1"}))
    for said, words in ((begun, b"while run_1 was under way"), (head, b"before it said that the run had begun")):
        path = glovebox.folder / "fake"

        def leave(connection, _body, said=said, path=path):
            path.unlink()
            connection.sendall(said)

        daemon = FakeDaemon(path, {"POST /v1/runs": leave})
        done = glovebox("run", "--daemon", path, "-c", "1")
        daemon.close()
        assert done.returncode == 125
        assert b"went away" in done.stderr and words in done.stderr, done.stderr


def test_an_interpreter_killed_from_outside_looks_like_its_own_end(service):
    """As docs/run.md says: nothing tells who sent a signal."""
    ends = []
    for code in ("import os; os.kill(os.getpid(), 9)", "import time; print('begun', flush=True); time.sleep(60)"):
        session = service.call("POST", "/v1/sessions", {"policy": "minimal"}).json["id"]
        place = f"/v1/sessions/{session}/contexts/python/run"
        where = "import os; print(os.getpid(), os.readlink('/proc/self/ns/pid'))"
        inner, namespace = service.call("POST", place, {"code": where}).json["stdout"].split()
        stream = service.open("POST", place, {"code": code}, headers={"Accept": "text/event-stream"})
        if "sleep" in code:
            events(stream, "stdout")
            outer, = (pid for pid in namespace_pids(namespace) if inner_pid(pid) == inner)
            os.kill(outer, signal.SIGKILL)
        ends.append(events(stream, "end")[-1][1])
        service.call("DELETE", f"/v1/sessions/{session}")
    told = [{key: end[key] for key in ("status", "fault", "exit_code", "signal", "limit", "limit_hits")} for end in ends]
    assert told[0] == told[1] == {"status": "error", "fault": "code", "exit_code": None, "signal": 9, "limit": None, "limit_hits": []}


def namespace_pids(namespace):
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and os.readlink(entry / "ns/pid") == namespace:
                yield int(entry.name)


def inner_pid(pid):
    line, = (row for row in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if row.startswith("NSpid:"))
    return line.split()[-1]

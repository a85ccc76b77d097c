"""Another writer of the log of receipts is stopped while it holds the log's lock: only executions whose records need
the lock wait, and they get their receipts when the writer goes on."""

import base64
import concurrent.futures
import fcntl
import json
import os
import re
import subprocess
import time

import pytest
from conftest import BUILD, Glovebox
from serving import Serving, state_of_its_own, with_policies

pytestmark = pytest.mark.usefixtures("python_template")
HELD_S = 6


@pytest.fixture
def service(tmp_path):
    glovebox = Glovebox(tmp_path)
    state_of_its_own(glovebox)
    env = with_policies(glovebox, {"fetch": "network: {allow: [{host: example.org, ports: [80]}]}"})
    with Serving(glovebox, tcp=False, env=env) as serving:
        yield serving


def long_turns(service):
    """Turns of the loop that took longer than a second."""
    text = service.call("GET", "/metrics").body.decode()
    at = dict(re.findall(r'glovebox_loop_turn_seconds_bucket\{le="([^"]*)"\} (\d+)', text))
    return int(at["+Inf"]) - int(at["1.0000"])


@pytest.mark.parametrize("code", ["print('x')", "print('\\x00' * 300000)"], ids=["little", "much"])
def test_a_stopped_log_writer_does_not_block_other_requests(service, code):
    before = long_turns(service)
    with open(service.glovebox.state / "daemon" / "log" / "lock", "r+b") as lock, \
            concurrent.futures.ThreadPoolExecutor(3) as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        runs = [pool.submit(service.run, code) for _ in range(3)]
        end, looks = time.monotonic() + HELD_S, 0
        while time.monotonic() < end:
            assert service.call("GET", "/healthz").status == 200
            looks += 1
            time.sleep(0.05)
        assert not any(run.done() for run in runs)  # no answer without its receipt
        assert looks > 10  # a loop that waits five seconds for each record lets three through
        fcntl.flock(lock, fcntl.LOCK_UN)
        answers = [run.result(60).json for run in runs]
    assert [(answer["status"], answer["receipt"][:4]) for answer in answers] == [("ok", "rcp_")] * 3
    assert long_turns(service) == before
    end = time.monotonic() + 10  # the first checkpoint comes a moment later
    while (done := service.glovebox("log", "verify")).returncode != 0 and time.monotonic() < end:
        time.sleep(0.1)
    assert done.returncode == 0, done.stdout


def test_a_run_with_a_network_waits_for_the_log_before_it_begins(service):
    """Its beginning is a record of its own: it is not lost because another process had the log for a moment."""
    with open(service.glovebox.state / "daemon" / "log" / "lock", "r+b") as lock, concurrent.futures.ThreadPoolExecutor(1) as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = pool.submit(service.run, "print('x')", policy="fetch")
        time.sleep(2)
        assert not run.done()
        fcntl.flock(lock, fcntl.LOCK_UN)
        answer = run.result(60).json
    assert (answer["status"], answer["stdout"]) == ("ok", "x\n"), answer


def test_the_log_is_covered_while_another_writer_is_stopped(service):
    """A checkpoint and a proof need no lock of the log: they are answered while another process has it."""
    receipt = service.run("print('x')").json["receipt"]
    with open(service.glovebox.state / "daemon" / "log" / "lock", "r+b") as lock, concurrent.futures.ThreadPoolExecutor(2) as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        asked = [pool.submit(service.call, "GET", path) for path in ("/v1/log/checkpoint", f"/v1/receipts/{receipt}?proof=1")]
        done = concurrent.futures.wait(asked, timeout=20).done
        fcntl.flock(lock, fcntl.LOCK_UN)
    assert len(done) == 2 and [ask.result().status for ask in asked] == [200, 200]


def test_a_proof_of_a_record_of_another_writer_waits_for_its_checkpoint(service):
    """The other has died before its checkpoint, and gloveboxd has not read the record yet."""
    assert service.run("print('x')").json["status"] == "ok"
    assert service.call("GET", "/v1/log/checkpoint").status == 200
    log = service.glovebox.state / "daemon" / "log"
    key = (log / "key").stat()
    with subprocess.Popen([BUILD / "receipt_writer", ".", "100000", "0"], cwd=log, user=key.st_uid, group=key.st_gid, extra_groups=[],
                          stdout=subprocess.PIPE) as other:
        said = [other.stdout.readline() for _ in range(3)]
        other.kill()
    assert [line.split()[:1] for line in said] == [[b"open"], [b"noted"], [b"answered"]]
    last = service.call("GET", "/v1/receipts").json["receipts"][-1]
    receipt = json.loads(base64.b64decode(last["envelope"]["payload"]))["predicate"]["id"]
    proof = service.call("GET", f"/v1/receipts/{receipt}?proof=1")
    assert proof.status == 200 and proof.json["index"] == last["index"], proof


def test_a_writer_stopped_at_its_checkpoint_is_named(service):
    """It holds the lock of the folder: records do not wait, and after five seconds without a checkpoint nothing new runs."""
    folder = os.open(service.glovebox.state / "daemon" / "log", os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        assert service.run("print('x')").json["status"] == "ok"
        end = time.monotonic() + 20
        while (refused := service.run("print('x')")).status == 200 and time.monotonic() < end:
            time.sleep(0.1)
        assert refused.status == 503 and "checkpoint for 5000 ms; is it stopped?" in refused.json["error"]["message"], refused
    finally:
        os.close(folder)
    end = time.monotonic() + 20
    while (run := service.run("print('x')")).status != 200 and time.monotonic() < end:
        time.sleep(0.1)
    assert run.json["status"] == "ok", run

"""Unexpected signals do not end the programs of a service, and a gloveboxd that hangs is restarted."""

import os
import pathlib
import signal
import time

import pytest
from conftest import Glovebox
from serving import Serving, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")
SILENT_S = 30  # supervisor/supervisor.c


@pytest.fixture
def service(tmp_path):
    glovebox = Glovebox(tmp_path)
    state_of_its_own(glovebox)
    with Serving(glovebox, tcp=False) as serving:
        yield serving


@pytest.mark.parametrize("number", ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGPIPE"])
def test_an_unexpected_signal_is_ignored(service, number):
    before = service.children()
    for name in ("gloveboxd", "glovebox-egress"):
        os.kill(before[name], signal.Signals[number])
    service.process.send_signal(signal.Signals[number])
    assert service.run("print(1)").json["stdout"] == "1\n"
    # Programs of a sandbox inherit nothing of it.
    state = service.run("print(open('/proc/self/status').read())", language="python").json["stdout"]
    ignored = int(next(line.split()[1] for line in state.splitlines() if line.startswith("SigIgn:")), 16)
    assert not ignored & 1 << signal.SIGUSR1 - 1
    assert service.process.poll() is None and service.children() == before


def test_a_gloveboxd_that_hangs_is_started_again(service):
    before = service.children()["gloveboxd"]
    os.kill(before, signal.SIGSTOP)
    end = time.monotonic() + 4 * SILENT_S
    while pathlib.Path(f"/proc/{before}").exists() and time.monotonic() < end:
        time.sleep(0.2)
    assert not pathlib.Path(f"/proc/{before}").exists()
    result = None
    while (not result or result["stdout"] != "2\n") and time.monotonic() < end:
        try:
            result = service.run("print(2)").json  # the first may come before its sandboxes can be built
        except OSError:
            time.sleep(0.1)
    assert result and result["stdout"] == "2\n", (result, service.log.read_text())
    assert "gloveboxd gave no sign of life for 30 s" in service.log.read_text()

"""A service with idle_exit ends after that time without use, and not before."""

import time

import pytest
from serving import Serving, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")


def test_it_ends_when_idle(glovebox):
    state_of_its_own(glovebox)
    with Serving(glovebox, "--idle-exit", "2") as service:
        assert service.run("print(1)").json["stdout"] == "1\n"
        made = service.call("POST", "/v1/sessions", {"policy": "minimal"}).json["id"]
        time.sleep(4)  # a session is use, also without a connection
        assert service.process.poll() is None
        run = service.call("POST", f"/v1/sessions/{made}/contexts/python/run", {"code": "1 + 1"})
        assert run.json["status"] == "ok"
        assert service.call("DELETE", f"/v1/sessions/{made}").status == 200
        began = time.monotonic()
        assert service.process.wait(60) == 0
        assert time.monotonic() - began > 1
        assert "idle_exit" in service.log.read_text()

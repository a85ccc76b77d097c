"""A tenant that uses more than a quarter of the processors gets, while there are other tenants, what these leave
(decision 180); and the processors as ever as soon as it uses less, or is alone."""

import contextlib
import os
import pathlib
import signal
import threading
import time

import pytest
from serving import Serving, state_of_its_own

pytestmark = [pytest.mark.usefixtures("python_template"), pytest.mark.alone,  # it takes all processors
              pytest.mark.skipif(os.geteuid() != 0, reason="groups are made by root's program"),
              pytest.mark.skipif([int(part) for part in os.uname().release.split(".")[:2]] < [5, 15],
                                 reason="cpu.idle came with Linux 5.15")]

BUSY = """
import os, time
end = time.monotonic() + {seconds}
for _ in range(3): os.fork()
while time.monotonic() < end: pass
"""


def descendants(pid):
    found = {pid}
    while True:
        more = set()
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, IndexError):
                if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) in found:
                    more.add(int(entry.name))
        if more <= found:
            return found
        found |= more


def idle_tenants(service):
    """{number of a tenant with programs: what its group says}."""
    found = {}
    for pid in descendants(service.process.pid):
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
                _, kinds, path = line.split(":", 2)
                if "/tenant-" in path and kinds.split(",")[0] in ("", "cpu"):
                    group = pathlib.Path("/sys/fs/cgroup" + ("/cpu" if kinds else "") + path).parent
                    found[group.name.rsplit("-", 1)[1]] = (group / "cpu.idle").read_text().strip()
    return found


def wait_until(holds, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.05)
    return False


def compute(service, key, seconds, **limits):
    done = []
    one = threading.Thread(target=lambda: done.append(
        service.run(BUSY.format(seconds=seconds), key=key, limits={"wall_ms": 9000} | limits)))
    one.start()
    return one, done


def two_keys(service):
    return {tenant: service.key("--tenant", tenant, "--name", tenant, "--scope", "run,sessions") for tenant in ("busy", "quiet")}


def test_a_tenant_that_uses_much_waits_for_others(glovebox):
    state_of_its_own(glovebox)
    with Serving(glovebox) as service:
        keys = two_keys(service)
        one, done = compute(service, keys["busy"], 3)
        assert not wait_until(lambda: "1" in idle_tenants(service).values(), 2.5), "there is no other tenant"
        one.join()
        assert done[0].json.get("status") == "ok", done[0].json
        assert service.run("print(1)", key=keys["quiet"]).json["stdout"] == "1\n"
        one, done = compute(service, keys["busy"], 4)
        assert wait_until(lambda: "1" in idle_tenants(service).values(), 3), idle_tenants(service)
        for _ in range(3):
            assert service.run("print(1)", key=keys["quiet"]).json["stdout"] == "1\n"
            assert list(idle_tenants(service).values()).count("1") == 1, "and no other"
        owner = service.key("--name", "owner", "--scope", "audit")
        assert b"\nglovebox_tenants_idle 1\n" in service.call("GET", "/metrics", key=owner).body
        one.join()
        assert done[0].json["status"] == "ok", "it got what was left"
        for _ in range(2):  # it has to have a sandbox in use: others are not looked at
            service.run("import time; time.sleep(1.5)", key=keys["busy"])
        assert wait_until(lambda: "1" not in idle_tenants(service).values(), 3), idle_tenants(service)


def test_a_sandbox_that_was_long_in_building_is_looked_at(glovebox):
    """Nothing else is leased while it is built: no sandbox with this limit is parked, and the spawner stands still."""
    state_of_its_own(glovebox)
    with Serving(glovebox) as service:
        keys = two_keys(service)
        assert service.run("print(1)", key=keys["quiet"]).json["stdout"] == "1\n"
        spawner = service.children()["glovebox-spawner"]
        os.kill(spawner, signal.SIGSTOP)
        try:
            one, done = compute(service, keys["busy"], 3, disk_bytes=3 << 20)
            time.sleep(1)  # several looks
        finally:
            os.kill(spawner, signal.SIGCONT)
        assert wait_until(lambda: "1" in idle_tenants(service).values(), 3), idle_tenants(service)
        one.join()
        assert done[0].json["status"] == "ok", done[0].json

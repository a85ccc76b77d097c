"""The sandboxes of a tenant share one group of the processor's controller, so that tenants are equal there however many
sandboxes each has. With control groups v1 a slot keeps some of its groups, empty, for the next sandbox of its tenant; they
go when another tenant's takes the slot, when the spawner ends, and with the next start if it was killed."""

import os
import pathlib
import re
import time

import pytest

from conftest import BUILD
from spawner_client import Spawner, v1_or_v2_groups

STATE = pathlib.Path(os.environ.get("GLOVEBOX_STATE", "/var/lib/glovebox"))
TEMPLATE = STATE / "templates/minimal/root"
GROUP = f"glovebox-tenants-{os.getpid()}"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="groups are made by root's program")


def places_of_processor(spawner):
    return [pathlib.Path(path) for kind, path in spawner.groups if kind in ("cpu", "unified")]


def tenants(spawner):
    """{tenant: sandboxes} as the folders stand."""
    return {re.fullmatch(r"tenant-\d+-(\d+)", folder.name)[1]: len([*folder.glob("*/")])
            for place in places_of_processor(spawner) for folder in place.glob("tenant-*/")}


@pytest.fixture
def spawner(tmp_path):
    running = Spawner(BUILD, TEMPLATE, tmp_path, group_name=GROUP)
    running.hello()
    yield running
    running.close()
    running.forget_groups()


def test_sandboxes_of_a_tenant_share_a_group(spawner):
    built = [spawner.build(tenant=tenant) for tenant in (1, 1, 2)]
    assert tenants(spawner) == {"1": 2, "2": 1}
    groups = [re.search(r"^\d+:(?:cpu)?:(.*tenant.*)$", pathlib.Path(f"/proc/{program}/cgroup").read_text(), re.MULTILINE)[1]
              for program in (sandbox.start("/usr/bin/sleep", "60") for sandbox in built)]
    assert len(set(groups)) == 3 and len({os.path.dirname(group) for group in groups}) == 2
    weights = {(folder / name).read_text() for place in places_of_processor(spawner) for folder in place.glob("tenant-*/")
               for name in ("cpu.shares", "cpu.weight") if (folder / name).exists()}
    assert len(weights) == 1, "tenants are equal"
    assert spawner.release(built[0]) == 0
    assert tenants(spawner) == {"1": 1, "2": 1}
    assert spawner.release(built[1]) == 0 and spawner.release(built[2]) == 0
    assert tenants(spawner) == {}
    for sandbox in built:
        sandbox.close()


def test_a_tenant_is_scheduled_as_idle(spawner):
    """Each of its sandboxes, and no other's; a group that is made anew is as usual."""
    first, second, other = (spawner.build(tenant=tenant) for tenant in (1, 1, 2))
    [place] = places_of_processor(spawner)
    if not [*place.glob("tenant-*/cpu.idle")]:
        pytest.skip("cpu.idle came with Linux 5.15")

    def idle():
        return {folder.name[-1]: (folder / "cpu.idle").read_text().strip() for folder in place.glob("tenant-*/")}

    assert idle() == {"1": "0", "2": "0"}
    for sandbox, is_idle in ((second, True), (second, True), (first, False), (first, True)):
        spawner.schedule(sandbox, is_idle)
        wait_until(lambda: idle() == {"1": str(int(is_idle)), "2": "0"})
    for sandbox in (first, second):
        assert spawner.release(sandbox) == 0
        sandbox.close()
    again = spawner.build(tenant=1)
    assert idle() == {"1": "0", "2": "0"}
    for sandbox in (again, other):
        sandbox.close()


def wait_until(holds, seconds=5):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_processor_time_of_a_tenant_is_counted(spawner):
    """In its group: that of sandboxes that have ended, too, as long as it has one."""
    sandboxes = [spawner.build(tenant=tenant, cpus=0) for tenant in (1, 1, 2)]
    used = {}
    for path in (pathlib.Path(path) for kind, path in spawner.groups if kind in ("cpuacct", "unified")):
        def read(number, path=path):
            [folder] = path.glob(f"tenant-*-{number}/")
            text = (folder / "cpuacct.usage" if (folder / "cpuacct.usage").exists() else folder / "cpu.stat").read_text()
            return int(text) // 1000 if text.strip().isdigit() else int(re.search(r"usage_usec (\d+)", text)[1])

        before = {number: read(number) for number in (1, 2)}
        sandboxes[0].start("/usr/bin/dash", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 60; :",
                           wait_for="61")
        wait_until(lambda: read(1) > before[1] + 20_000)
        assert read(2) < before[2] + 20_000
        assert spawner.release(sandboxes[0]) == 0
        assert read(1) > before[1] + 20_000
        used[path] = True
    assert used
    for sandbox in sandboxes:
        sandbox.close()


def keeps_groups(spawner):
    return "unified" not in dict(spawner.groups)


def left_in_groups(spawner):
    """Processes in groups of sandboxes, and groups of pids: each of those is new."""
    left = [file for _, path in spawner.groups for file in pathlib.Path(path).rglob("cgroup.procs")
            if "holders" not in file.parent.name and file.read_text()]
    return left + [folder for kind, path in spawner.groups if kind == "pids" for folder in pathlib.Path(path).glob("[0-9]*/")]


@pytest.mark.skipif("memory" not in dict(v1_or_v2_groups(GROUP)), reason="cgroup v2 has one group for all, new each time")
def test_kept_groups_are_as_new(spawner):
    inodes, seen = {}, 0
    for turn in range(12):
        limit = (64 << 20, 256 << 20, 16 << 20)[turn % 3]
        sandbox = spawner.build(tenant=5, memory=limit, processes=9 + turn, cpus=0)
        place = pathlib.Path(dict(spawner.groups)["memory"], str(sandbox.slot))
        [used] = pathlib.Path(dict(spawner.groups)["cpuacct"]).glob(f"tenant-*/{sandbox.slot}/cpuacct.usage")
        seen += inodes.get(sandbox.slot) == place.stat().st_ino
        inodes[sandbox.slot] = place.stat().st_ino
        assert (place / "memory.failcnt").read_text() == "0\n"
        assert int(used.read_text()) < 50_000_000, "init alone has been in it"
        assert (place / "memory.limit_in_bytes").read_text() == f"{limit}\n"
        assert int((place / "memory.max_usage_in_bytes").read_text()) <= 1 << 20
        assert "oom_kill 0" in (place / "memory.oom_control").read_text()
        pids = pathlib.Path(dict(spawner.groups)["pids"], str(sandbox.slot))
        assert (pids / "pids.max").read_text() == f"{9 + turn}\n" and (pids / "pids.events").read_text().startswith("max 0\n")
        sandbox.start("/usr/bin/sleep", "60")
        assert spawner.release(sandbox) == 0
        sandbox.close()
        assert not left_in_groups(spawner)
    assert seen >= 4, "no group was had twice"


def test_another_tenant_gets_other_groups(spawner):
    made = set()
    for tenant in (1, 2, 3, 4, 5, 1, 2, 3, 4):  # four slots: a slot gets another tenant each time
        sandbox = spawner.build(tenant=tenant, cpus=0)
        assert set(tenants(spawner)) <= set("12345")
        for kind, path in spawner.groups:
            if kind in ("memory", "cpuacct"):
                [leaf] = [*pathlib.Path(path).glob(f"{sandbox.slot}/"), *pathlib.Path(path).glob(f"tenant-*/{sandbox.slot}/")]
                made.add((kind, leaf.stat().st_ino))
        assert spawner.release(sandbox) == 0
        sandbox.close()
    if keeps_groups(spawner):
        assert len(made) == 2 * 9, "a group was had by two tenants"


def test_kept_groups_go_with_the_spawner(tmp_path):
    """By its end, and by the next start if it was killed."""
    for kill in (False, True):
        running = Spawner(BUILD, TEMPLATE, tmp_path, group_name=GROUP)
        running.hello()
        for _ in range(6):
            sandbox = running.build(tenant=3, cpus=0)
            assert running.release(sandbox) == 0
            sandbox.close()
        kept = [folder for _, path in running.groups for folder in pathlib.Path(path).rglob("[0-9]*/")]
        assert bool(kept) == keeps_groups(running)
        if kill:
            running.process.kill()
        running.close()
        if kill:
            time.sleep(0.2)
            following = Spawner(BUILD, TEMPLATE, tmp_path, group_name=GROUP)
            following.hello()
            following.close()
        assert not [folder for _, path in running.groups for folder in pathlib.Path(path).rglob("[0-9]*/")]
        running.forget_groups()


def test_groups_of_a_killed_spawner_go_with_the_next_start(tmp_path):
    killed = Spawner(BUILD, TEMPLATE, tmp_path, group_name=GROUP)
    killed.hello()
    sandbox = killed.build(tenant=7)
    killed.process.kill()
    killed.close()
    sandbox.close()
    assert tenants(killed) == {"7": 1}
    time.sleep(0.2)
    following = Spawner(BUILD, TEMPLATE, tmp_path, group_name=GROUP)
    try:
        assert following.hello()["swept"] > 0
        assert tenants(following) == {}
    finally:
        following.close()
        following.forget_groups()

"""The sandboxes of a tenant share one group of the processor's controller, so that tenants are equal there however many
sandboxes each has; the group goes with the last of them, and with the next start if the spawner was killed."""

import os
import pathlib
import re
import time

import pytest

from spawner_client import Spawner

BUILD = pathlib.Path(os.environ.get("GLOVEBOX_BUILD", "build"))
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

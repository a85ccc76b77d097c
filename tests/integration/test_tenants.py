"""Runs of different tenants, many at once: they never share a zygote, a user id at the same time, a file, or a byte of
memory that one wrote."""

import collections
import contextlib
import json
import os
import pathlib
import threading

import pytest
from serving import Serving, state_of_its_own

pytestmark = [pytest.mark.usefixtures("python_template"), pytest.mark.alone]  # the user ids of sandboxes on the whole machine

SANDBOX_IDS = range(0x70000000 + 1024, 0x70000000 + 65536)  # model/ids.h
ROUNDS = 24

# The checkpoint of each tenant is put together when the program runs: no source has the other's.
PROGRAM = """
import json, os, re, sys
def checkpoint(tenant): return bytes(byte ^ 1 for byte in tenant.encode()) * 4
mine, others = checkpoint({mine!r}), checkpoint({other!r})
places = ["/workspace", "/tmp", "/dev/shm", os.path.expanduser("~")]
found = [os.path.join(place, name) for place in places for name in os.listdir(place) if not name.startswith(".")]
for place in places:
    with open(place + "/checkpoint", "wb") as file: file.write(mine * 1000)
kept = [mine * 100 for _ in range(200)]
seen = own = 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps:
        begin, end = (int(word, 16) for word in line.split()[0].split("-"))
        if line.split()[1][:2] != "rw" or end - begin > 1 << 27: continue
        try:
            memory.seek(begin)
            text = memory.read(end - begin)
            seen, own = seen + text.count(others), own + text.count(mine)
        except OSError: pass
print(json.dumps({{"zygote": hash("which zygote is it?"), "found": found, "seen": seen, "own": own,
                  "me": os.getuid(), "processes": [int(name) for name in os.listdir("/proc") if name.isdigit()]}}))
"""


def stand_together():
    """user id -> process id namespaces that have a process of it, on the whole host at this moment."""
    found = collections.defaultdict(set)
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            user = entry.stat().st_uid
            if user in SANDBOX_IDS:
                found[user].add(os.readlink(entry / "ns/pid"))
    return found


def test_tenants_share_nothing(glovebox):
    state_of_its_own(glovebox)
    told, together = {"crimson": [], "indigo": []}, []
    with Serving(glovebox, slots=32) as service:
        keys = {tenant: service.key("--tenant", tenant, "--name", tenant) for tenant in told}

        def client(mine, other):
            code = PROGRAM.format(mine=mine, other=other)
            for _ in range(ROUNDS):
                answer = service.run(code, key=keys[mine])
                told[mine].append(answer.json)

        clients = [threading.Thread(target=client, args=pair) for pair in
                   2 * [("crimson", "indigo"), ("indigo", "crimson")]]
        for one in clients:
            one.start()
        while any(one.is_alive() for one in clients):
            together += [(user, spaces) for user, spaces in stand_together().items() if len(spaces) > 1]
        for one in clients:
            one.join()
    zygotes = {}
    for tenant, results in told.items():
        assert len(results) == 2 * ROUNDS
        for result in results:
            assert result["status"] == "ok", result
            said = json.loads(result["stdout"])
            assert said["found"] == [], "files of another run"
            assert said["own"] >= 20000, "it cannot even see what it wrote itself"
            assert said["seen"] < 20, "memory of another tenant's run"  # its own word for it and copies of that
            assert set(said["processes"]) <= {1, 2, 3, 4, 5}, "processes of another run"
        zygotes[tenant] = {json.loads(result["stdout"])["zygote"] for result in results}
    assert not zygotes["crimson"] & zygotes["indigo"], "a zygote served both"
    if os.geteuid() == 0:
        assert not together, "two sandboxes had one user id at the same time"

"""`glovebox limits report`: the limits that ordinary work nearly reaches, from the receipts; and the same counts in
/metrics."""

import json

import pytest
from serving import Serving, state_of_its_own, with_policies

pytestmark = pytest.mark.usefixtures("python_template")

POLICIES = {"met": "limits: {disk: 1MiB}", "near": "limits: {disk: 1MiB}", "rare": "limits: {disk: 1MiB}"}
WRITE = "import os\nf = os.open('f', os.O_CREAT | os.O_WRONLY)\nos.write(f, b'x' * {})"
RUNS = 24


def test_what_callers_lower_themselves_says_nothing_of_the_policy(glovebox):
    """Runs that had asked for less, and met that, are counted apart; what a changed policy grants is learnt anew."""
    state_of_its_own(glovebox)
    env = with_policies(glovebox, POLICIES)
    with Serving(glovebox, tcp=False, env=env) as server:
        for size, lowered, count in ((2_000_000, 512 << 10, 2), (10, None, RUNS), (2_000_000, 512 << 10, 3)):
            for _ in range(count):
                more = {"limits": {"disk_bytes": lowered}} if lowered else {}
                assert server.run(WRITE.format(size), policy="met", **more).status == 200
    row = json.loads(glovebox("limits", "report", "--json").stdout)["policies"]["met"]["limits"]["disk"]
    assert (row["verdict"], row["hits"], row["runs"], row["lowered"], row["granted_most"]) == ("roomy", 0, RUNS, 5, 1 << 20)
    assert "(5 more had asked for less)" in glovebox("limits", "report").stdout.decode()
    (glovebox.folder / "policies/met.yaml").write_text("name: met\nextends: minimal\nlimits: {disk: 128KiB}\n")
    with Serving(glovebox, tcp=False, env=env) as server:
        for _ in range(3):
            assert server.run(WRITE.format(2_000_000), policy="met").status == 200
    row = json.loads(glovebox("limits", "report", "--json").stdout)["policies"]["met"]["limits"]["disk"]
    assert (row["verdict"], row["hits"], row["granted_most"]) == ("met_often", 3, 128 << 10)
    assert "ended_by:disk" not in glovebox("limits", "report").stdout.decode(), "it ended none"


def test_limits_that_are_met_or_near_are_named(glovebox):
    state_of_its_own(glovebox)
    with Serving(glovebox, tcp=False, env=with_policies(glovebox, POLICIES)) as server:
        for policy, size, count in (("met", 2_000_000, 2), ("met", 10, RUNS - 3), ("near", 1_000_000, 3), ("near", 10, RUNS - 3),
                                    ("rare", 2_000_000, 1)):
            for _ in range(count):
                assert server.run(WRITE.format(size), policy=policy).status == 200
        assert server.run(WRITE.format(10) + "\nprint(1)", policy="met").status == 200
        metrics = server.call("GET", "/metrics").body.decode()
    assert 'glovebox_policy_limit_hits_total{policy="met",limit="disk"} 2\n' in metrics
    assert 'glovebox_policy_limit_hits_total{policy="rare",limit="disk"} 1\n' in metrics
    assert 'policy="near"' not in metrics
    done = glovebox("limits", "report", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["runs"] == 2 * RUNS + 1 and set(told["policies"]) == set(POLICIES)
    disk = {name: policy["limits"]["disk"] for name, policy in told["policies"].items()}
    assert {name: row["verdict"] for name, row in disk.items()} == {"met": "met_often", "near": "tight", "rare": "too_few"}
    assert disk["met"]["hits"] == 2 and disk["near"]["hits"] == 0 and disk["near"]["used_most_percent"] >= 90
    assert disk["near"]["used_p50_percent"] < 10 and disk["near"]["granted_most"] == 1 << 20
    assert told["policies"]["near"]["limits"]["inodes"]["verdict"] == "roomy"
    text = glovebox("limits", "report", "--policy", "met", "--since", "1h").stdout.decode()
    assert glovebox("limits", "report", "--policy", "met", "--since", "2026-01-01T00:00:00+01:00").stdout.decode() == text
    assert text.startswith(f"met: {RUNS} runs\n") and f"met by 2 of {RUNS} runs: raise it above 1 MiB" in text
    assert "near" not in text
    assert told["policies"]["met"]["limits"]["output"]["verdict"] == "no_data", "one run has printed"
    assert f"  no data of {RUNS - 1} of {RUNS} runs, others use less than 1 %\n" in text
    alone = glovebox("limits", "report", "--policy", "rare").stdout.decode()
    assert alone.startswith("rare: 1 run, too few to say more") and alone.splitlines()[1].split()[0] == "LIMIT"
    assert glovebox("limits").stdout == glovebox("limits", "report").stdout
    assert glovebox("limits", "--policy", "met").stdout == glovebox("limits", "report", "--policy", "met").stdout
    for wrong, says in ((("limits", "show"), "there is no 'limits show'"), (("limits", "report", "--since", "7"), "--since takes a time")):
        done = glovebox(*wrong)
        assert done.returncode != 0 and says in done.stderr.decode(), done.stderr

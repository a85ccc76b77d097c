"""Carries out the commands of the pages for operators: install, upgrade, uninstall, backup, restore on another machine,
many teams. The test replaces systemctl, since it has no service manager."""

import json
import os
import re
import shlex
import shutil
import subprocess

import pytest
from conftest import BUILD, STATE, TOP
from serving import Serving, let_others_in, state_of_its_own

pytestmark = [pytest.mark.usefixtures("python_template"),
              pytest.mark.skipif(os.geteuid() != 0, reason="the pages are for root's service")]


def blocks_of(page, section):
    """The blocks of code of a section."""
    text = (TOP / "docs" / page).read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def without_systemctl(block):
    """The lines before the service is stopped, while it is, and after it has started again."""
    parts, lines = [[]], block.splitlines()
    for line in lines:
        if "systemctl" in line:
            parts.append([])
        else:
            parts[-1].append(line)
    return ["\n".join(part) for part in parts]


class Machine:
    """A root folder that stands for the machine's: its var/lib/glovebox is the state of `glovebox`."""

    def __init__(self, glovebox, name):
        self.glovebox, self.kept = glovebox, glovebox.folder / "kept"
        self.root = glovebox.folder / name
        self.state = self.root / "var/lib/glovebox"
        (self.root / "etc/glovebox/policies").mkdir(parents=True)
        self.state.parent.mkdir(parents=True)
        self.kept.mkdir(exist_ok=True)
        let_others_in(self.state.parent)

    def sh(self, lines):
        """As root of that machine would do it."""
        for path, stand_in in ((" /srv/kept", f" {self.kept}"), (">/srv/kept", f">{self.kept}"), (" /var/lib", f" {self.root}/var/lib"),
                               (" -C / ", f" -C {self.root} ")):
            lines = lines.replace(path, stand_in)
        return subprocess.run(["sh", "-euc", f"glovebox() {{ {shlex.quote(self.glovebox.program)} \"$@\"; }}\n{lines}"], capture_output=True, text=True,
                              env=self.glovebox.environment({"GLOVEBOX_STATE": str(self.state)}), timeout=120, check=True)


def test_a_backup_is_a_service_on_another_machine(glovebox):
    one, other = Machine(glovebox, "one"), Machine(glovebox, "other")
    before, stopped = without_systemctl(blocks_of("backup.md", "Backup")[0])[:2]
    restore = without_systemctl(blocks_of("backup.md", "Restore, or move to another machine")[0])
    (one.state / "templates").mkdir(parents=True)
    (one.root / "etc/glovebox/policies/ours.yaml").write_text("name: ours\nextends: minimal\n")
    subprocess.run(["cp", "-a", STATE / "templates/minimal", one.state / "templates"], check=True)

    def serve(machine):
        glovebox.state = machine.state
        return Serving(glovebox, env={"GLOVEBOX_POLICIES": f"{machine.root}/etc/glovebox/policies:{BUILD}/policies"})

    with serve(one) as service:
        key = service.key("--scope", "run,sessions,audit")
        revoked = service.key()
        assert glovebox("key", "revoke", revoked["id"]).returncode == 0
        run = service.run("open('/workspace/made.txt', 'w').write('kept')", key=key, policy="ours").json
        artifact = run["artifacts"][0]["url"]
        one.sh(before)
    one.sh(stopped)
    assert (one.kept / "glovebox.tar").stat().st_size > 1 << 20

    (other.state / "daemon").mkdir(parents=True)  # what was tried there before
    (other.state / "daemon/left").write_text("over")
    for lines in restore[:-1]:
        assert "Error" not in other.sh(lines).stderr
    assert not (other.state / "daemon/left").exists()
    with serve(other) as service:
        assert service.call("GET", artifact, key=key).body == b"kept"
        assert service.call("GET", f"/v1/receipts/{run['receipt']}", key=key).status == 200
        assert service.run("1", key=revoked).status == 401
        after = service.run("print(6 * 7)", key=key, policy="ours")
        assert after.json["stdout"] == "42\n" and after.json["template"]["digest"] == run["template"]["digest"]
    verified = glovebox("log", "verify", "--key", other.kept / "kept.pub", "--checkpoint", other.kept / "kept.txt")
    assert verified.returncode == 0, verified
    assert glovebox("receipt", "verify", after.json["receipt"]).returncode == 0


def test_an_installed_service_is_upgraded_and_uninstalled(glovebox):
    """From where `make install` has put it, at /usr/local in a mount namespace of its own."""
    destination = glovebox.folder / "installed"

    def make(goal):
        done = subprocess.run(["make", goal, f"BUILD={BUILD}", f"DESTDIR={destination}"], cwd=TOP, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    state_of_its_own(glovebox)
    make("install")
    program = glovebox.folder / "installed-glovebox"
    program.write_text(f"#!/bin/sh\nexec unshare --mount sh -c 'mount --bind {destination}/usr/local /usr/local && exec /usr/local/bin/glovebox \"$@\"' sh \"$@\"\n")
    program.chmod(0o755)
    glovebox.program = str(program)
    with Serving(glovebox) as service:
        key = service.key()
        assert service.run("print(1)", key=key).json["stdout"] == "1\n"
        subprocess.run(f"{program} log checkpoint >kept.txt", shell=True, cwd=glovebox.folder, check=True, env=glovebox.environment())
        make("install")  # over it, while it serves
        assert service.run("print(2)", key=key).json["stdout"] == "2\n"
    with Serving(glovebox) as service:  # the restart
        assert service.run("print(3)", key=key).json["stdout"] == "3\n"
        assert glovebox("log", "verify", "--checkpoint", "kept.txt").returncode == 0
        assert b" is ready\n" in glovebox("status", "--daemon", service.socket).stdout
    units = (destination / "usr/local/lib/systemd/system/glovebox.service").read_text()
    assert "ExecStart=/usr/local/bin/glovebox serve" in units
    assert (destination / "usr/local/share/man/man1/glovebox.1").exists() == bool(shutil.which("scdoc"))
    make("uninstall")
    assert [str(path) for path in destination.rglob("*") if path.is_symlink() or not path.is_dir()] == []


def test_teams_have_their_own_keys_policies_and_approvers(glovebox):
    state_of_its_own(glovebox)
    folder = glovebox.folder / "policies"
    folder.mkdir()
    policy = blocks_of("teams.md", "Policies")[0].replace("red.yaml", "NAME.yaml")
    teams = [f"team-{number}" for number in range(10)]
    for team in teams:
        text = policy.replace("name: red", f"name: {team}").replace("extends: data", "extends: data\ntemplate: minimal")
        (folder / f"{team}.yaml").write_text(text)
        assert glovebox("policy", "validate", folder / f"{team}.yaml").returncode == 0, text
    script = blocks_of("teams.md", "Keys")[0].replace("in red blue", "in " + " ".join(teams)).replace("key create", "key create --json")
    done = subprocess.run(["sh", "-euc", script.replace("glovebox ", f"{shlex.quote(glovebox.program)} ")], capture_output=True, text=True,
                          env=glovebox.environment({"GLOVEBOX_POLICIES": f"{folder}:{BUILD}/policies"}), check=True)
    keys = {key["name"]: key for key in map(json.loads, done.stdout.splitlines())}
    assert len(keys) == 2 * len(teams) + 2
    let_others_in(folder)
    with Serving(glovebox, env={"GLOVEBOX_POLICIES": f"{folder}:{BUILD}/policies"}) as service:
        for team in teams:
            done = service.call("POST", "/v1/runs", {"code": f"open('/workspace/f', 'w').write('{team}')"}, key=keys[team])
            assert (done.status, done.json["policy"]["name"]) == (200, team), "the first policy that the key may use"
            assert done.headers["RateLimit-Limit"] == "600"
            other = keys[teams[(teams.index(team) + 1) % len(teams)]]
            assert service.call("GET", done.json["artifacts"][0]["url"], key=other).status == 404
        assert service.run("1", key=keys["team-0"], policy="team-1").status == 403
        request = {"limits": {"wall_ms": 60000}, "policy": "team-0", "key": keys["team-0"]}
        approval = service.run("print(1)", **request).json["approval"]
        place, decision = f"/v1/approvals/{approval}", {"decision": "approve"}
        assert service.call("GET", place, key=keys["team-1-approver"]).status == 404
        assert service.call("POST", f"{place}:decide", decision, key=keys["team-0"]).status == 403, "the asker"
        assert service.call("POST", f"{place}:decide", decision, key=keys["team-0-approver"]).status == 200
        assert service.run("print(1)", **request).json["stdout"] == "1\n"
        assert service.call("GET", "/metrics", key=keys["prometheus"]).status == 200
        assert service.call("GET", "/v1/status", key=keys["operator"]).json["keys"]


def test_the_costs_of_the_readme_are_those_of_the_page_that_it_links():
    rows = re.findall(r"^\| hello (.+?) \|.*?\|.*?\|.*?\| ([\d.]+) \([^|]+\) \|", (TOP / "docs/benchmark.md").read_text(), re.MULTILINE)
    measured = dict(reversed(rows))  # the first table is that of the last measurement
    table = (TOP / "README.md").read_text().split("What it costs to print one line")[1].split("All of them isolate")[0]
    told = re.findall(r"^\| .+ \| ([\d.; ]+) \|$", table, re.MULTILINE)
    assert told == [measured["warm"], measured["CLI with daemon"], measured["cold CLI"], measured["bubblewrap"],
                    f"{measured['crun']}; {measured['runc']}", measured["runsc"]]

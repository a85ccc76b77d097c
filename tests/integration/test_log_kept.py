"""Options of the log of receipts that only an operator sees work: `--log-keep`, which deletes the oldest segments, and the
witness `syslog`, which gets each checkpoint as one line."""

import contextlib
import json
import os
import shutil
import socket
import stat
import subprocess
import time

import pytest
from conftest import BUILD
from disk_rig import mounts_of_its_own
from serving import Serving, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")

KEPT = 600_000  # bytes: two segments of the writer, and some of a third


def until(is_so, what):
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def segments(log):
    return sorted(path.name for path in log.glob("*.log"))


def verified(glovebox, log, *more):
    return json.loads(glovebox("log", "verify", "--json", "--log", log, *more).stdout)


@pytest.fixture
def grown(glovebox):
    """The log of a service that is to start: five segments of 256 KiB, and what the writer said of each record."""
    log = state_of_its_own(glovebox) / "daemon" / "log"
    assert glovebox("key", "create").returncode == 0
    owner = log.parent.stat()
    shutil.rmtree(log)
    log.mkdir()
    told = subprocess.run([BUILD / "receipt_writer", log, "500", "50"], check=True, capture_output=True, text=True).stdout
    for path in (log, *log.iterdir()):
        os.chown(path, owner.st_uid, owner.st_gid)
    assert len(segments(log)) >= 5 and verified(glovebox, log)["verified"]
    return log, [line.split()[1:] for line in told.splitlines() if line.startswith("answered ")]


class TestKeep:
    @pytest.mark.parametrize("sync", ["group", "each"])
    def test_the_oldest_segments_go_and_proofs_stay(self, glovebox, grown, sync):
        log, records = grown
        before = segments(log)
        sizes = {name: (log / name).stat().st_size for name in before}
        with Serving(glovebox, "--log-keep", str(KEPT), "--log-sync", sync, tcp=False) as server:
            run = server.run("print(1)").json
            until(lambda: len(segments(log)) < len(before), "nothing was deleted")
            for index in (0, 250, 499):
                assert server.call("GET", f"/v1/log/proof/inclusion?index={index}").status == 200
            assert server.call("GET", f"/v1/receipts/{run['receipt']}").status == 200
        left = segments(log)
        went = [name for name in before if name not in left]
        assert went == before[:len(went)] and len(left) >= 2, (before, left)
        kept = sum(sizes.get(name, 0) for name in left)
        assert kept <= KEPT < kept + sizes[went[-1]], "no more and no less than that"
        found = glovebox("log", "search", "log.trimmed", "--log", log).stdout.decode()
        first = int(left[0].split(".")[0])
        assert f'"first_kept":{first}' in found.replace(" ", ""), found
        report = verified(glovebox, log)
        assert report["verified"] and report["first"] == first, report
        gone, there = records[0][0], records[-1][0]
        assert glovebox("log", "search", there, "--log", log).stdout and not glovebox("log", "search", gone, "--log", log).stdout
        (log / left[0]).unlink()  # what no event tells
        assert not verified(glovebox, log)["verified"]

    def test_without_it_everything_stays(self, glovebox, grown):
        log, _ = grown
        before = segments(log)
        with Serving(glovebox, tcp=False) as server:
            assert server.run("print(1)").status == 200
        assert set(before) <= set(segments(log)) and verified(glovebox, log)["first"] == 0


# --- syslog --------------------------------------------------------------------------------------------

@contextlib.contextmanager
def devices_of_its_own(folder):
    """A /dev with what the machine's has but /dev/log, for this thread and its children."""
    made = folder / "dev"
    with mounts_of_its_own():
        made.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", made], check=True)
        for path in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm"):
            found = os.path.join("/dev", path)
            if not os.path.lexists(found):
                continue
            if os.path.islink(found):
                (made / path).symlink_to(os.readlink(found))
                continue
            if stat.S_ISDIR(os.stat(found).st_mode):
                (made / path).mkdir()
            else:
                (made / path).touch()
            subprocess.run(["mount", "--rbind", found, made / path], check=True)
        (made / "fd").symlink_to("/proc/self/fd")
        subprocess.run(["mount", "--move", made, "/dev"], check=True)
        yield


class TestSyslog:
    def test_each_checkpoint_is_one_line(self, glovebox):
        log = state_of_its_own(glovebox) / "daemon" / "log"
        with devices_of_its_own(glovebox.folder), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
            heard.bind("/dev/log")
            os.chmod("/dev/log", 0o666)
            heard.settimeout(30)
            with Serving(glovebox, "--log-witness", "syslog", tcp=False) as server:
                run = server.run("print(1)").json
                assert server.call("GET", f"/v1/receipts/{run['receipt']}?proof=1").status == 200  # a checkpoint covers it
                newest = server.call("GET", "/v1/log/checkpoint").body.decode()
                lines = [heard.recv(65536).decode()]
                while int(lines[-1].split("\t")[2]) < int(newest.split("\n")[1]):
                    lines.append(heard.recv(65536).decode())
        assert lines[-1].split("\t", 1)[1].replace("\t", "\n") == newest
        for number, line in enumerate(lines):
            assert line.startswith("<13>glovebox: checkpoint\t") and "\n" not in line and "\0" not in line, line
            note = glovebox.folder / f"note{number}"
            note.write_text(line.split("\t", 1)[1].replace("\t", "\n"))
            assert verified(glovebox, log, "--checkpoint", note)["verified"], line
        other = glovebox.folder / "other"
        shutil.copytree(log, other)
        (other / segments(other)[-1]).write_bytes(b"")
        assert not verified(glovebox, other, "--checkpoint", note)["verified"]

    def test_without_a_syslog_the_service_does_not_start(self, glovebox):
        state_of_its_own(glovebox)
        with devices_of_its_own(glovebox.folder):
            done = glovebox("serve", "--socket", glovebox.folder / "s", "--log-witness", "syslog", env={"GLOVEBOX_POOL_MIN": "0"})
        assert done.returncode == 125 and b"reach syslog at /dev/log as the witness" in done.stderr, done

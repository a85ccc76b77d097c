"""A long log: it is verified, searched, paged through and written on. `make log-size` takes 100,000 records."""

import json
import os
import pathlib
import subprocess

import pytest
from conftest import BUILD
from serving import Serving, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")

RECORDS = int(os.environ.get("GLOVEBOX_LOG_RECORDS", "10000"))
PAGE = 100


def peak_of(pid, kind):
    """KiB, of proc(5) status: RssAnon is memory of its own, without the log's files that it has mapped."""
    return next(int(line.split()[1]) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(kind))


def own(folder, user, group):
    """The log belongs to the user of gloveboxd; the writer of this test takes only one of its own."""
    for path in (folder, *folder.iterdir()):
        os.chown(path, user, group)


def page_through(service, auditor):
    """Numbers of all records, page by page."""
    seen, cursor = [], ""
    while cursor is not None:
        page = service.call("GET", f"/v1/receipts?limit={PAGE}" + (f"&cursor={cursor}" if cursor else ""), key=auditor).json
        seen += [receipt["index"] for receipt in page["receipts"]]
        cursor = page["next_cursor"]
    return seen


def test_a_long_log(glovebox):
    state_of_its_own(glovebox)
    log = glovebox.state / "daemon" / "log"
    with Serving(glovebox):
        owner = log.stat()
    own(log, os.geteuid(), os.getegid())
    subprocess.run([BUILD / "receipt_writer", log, str(RECORDS), "0"], check=True, stdout=subprocess.DEVNULL)
    own(log, owner.st_uid, owner.st_gid)
    kept = (log / "checkpoint").read_bytes()
    (glovebox.folder / "kept").write_bytes(kept)
    with Serving(glovebox) as service:
        auditor = service.key("--name", "auditor", "--scope", "audit,run")
        daemon = service.children()["gloveboxd"]
        before = peak_of(daemon, "RssAnon")
        last = service.run("print(1)", key=auditor).json["receipt"]
        assert service.call("GET", f"/v1/receipts/{last}?proof=1", key=auditor).json["index"] >= RECORDS
        assert service.call("GET", "/v1/log/proof/consistency?from=1", key=auditor).status == 200
        seen = page_through(service, None)  # the owner's connection: all of it
        assert len(seen) > RECORDS
        assert seen == sorted(set(seen)) or seen == sorted(set(seen), reverse=True)
        after = peak_of(daemon, "RssAnon")
        assert after - before < 16 * 1024, f"{before} KiB before, {after} after {RECORDS} records were read"
    words = ("--log", log)
    for more in ((), ("--signatures",), ("--checkpoint", glovebox.folder / "kept")):
        done = glovebox("log", "verify", "--json", *words, *more)
        assert done.returncode == 0 and json.loads(done.stdout)["size"] > RECORDS, done.stdout
    assert len(glovebox("log", "tail", "-n", "5", *words).stdout.splitlines()) == 5
    assert len(glovebox("log", "search", last, *words).stdout.splitlines()) == 1
    bundle = glovebox.folder / "bundle"
    assert glovebox("receipt", "export", last, *words, "--bundle", "--out", bundle).returncode == 0
    assert b"VERIFIED" in glovebox("receipt", "verify", bundle, "--public-key", log / "key.pub").stdout

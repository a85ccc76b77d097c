"""glovebox template verify: what is on the disk is compared with the digest, and a service records it when it begins."""

import contextlib
import hashlib
import json
import os
import pathlib
import socket
import stat
import time

import pytest
from serving import Serving, let_others_in


def digest_by_the_page(template):
    """docs/templates.md, "Verification", and nothing else."""
    whole = hashlib.sha256()

    def walk(folder, above):
        for name in sorted(os.listdir(os.fsencode(folder))):
            path = pathlib.Path(os.fsdecode(os.path.join(os.fsencode(folder), name)))
            inside = above + name
            mode, content, kind = path.lstat().st_mode & 0o7777, b"", b"d"
            if path.is_symlink():
                mode, content, kind = 0o777, os.fsencode(os.readlink(path)), b"l"
            elif path.is_file():
                content, kind = hashlib.sha256(path.read_bytes()).hexdigest().encode(), b"f"
            whole.update(inside + b"\0" + kind + b"%o" % mode + b"\0" + content + b"\n")
            if kind == b"d":
                walk(path, inside + b"/")

    walk(template / "root", b"")
    manifest = json.loads((template / "manifest.json").read_text())
    for key in ("languages", "env", "zygotes"):
        value = json.dumps(manifest.get(key), separators=(",", ":"), ensure_ascii=False).replace("/", "\\/")
        whole.update(key.encode() + b"\0" + value.encode() + b"\n")
    return "sha256:" + whole.hexdigest()


@pytest.fixture
def template(glovebox):
    """A small one, with all kinds of entries, in a state of its own."""
    let_others_in(glovebox.folder)
    glovebox.state = glovebox.folder / "state"
    place = glovebox.state / "templates" / "tiny"
    root = place / "root"
    for folder in ("usr/lib", "etc", "usr-1", "empty"):
        (root / folder).mkdir(parents=True)
    (root / "usr/lib/a.py").write_text("print(1)\n")
    (root / "usr/lib/b\u00e9 \n.so").write_bytes(bytes(300000))
    (root / "etc/mode").write_text("")
    (root / "etc/link").symlink_to("../usr/lib/a.py")
    manifest = {"name": "tiny", "digest": "", "languages": {"python": {"command": ["/usr/bin/python3", "{file}"], "file": "m.py"}},
                "env": {"A": "\u00e9/\""}}
    (place / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False))
    manifest["digest"] = digest_by_the_page(place)
    (place / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False))
    return place


def verify(glovebox, *more):
    done = glovebox("template", "verify", "--json", *more)
    return done.returncode, json.loads(done.stdout), done.stderr.decode()


def test_the_digest_is_what_the_page_says(glovebox, template):
    status, (row,), said = verify(glovebox)
    assert (status, said) == (0, "") and row["same"] and row["digest"] == row["measured"] == digest_by_the_page(template)
    assert "as it was built" in glovebox("template", "verify", "tiny").stdout.decode()
    assert glovebox("template", "verify", "nope").returncode == 125


CHANGES = {
    "a byte": lambda root: (root / "usr/lib/a.py").write_text("print(2)\n"),
    "a byte at the end of a large file": lambda root: os.truncate(root / "usr/lib/b\u00e9 \n.so", 299999),
    "a file more": lambda root: (root / "usr/lib/sitecustomize.py").write_text(""),
    "a file less": lambda root: (root / "usr/lib/a.py").unlink(),
    "an empty folder more": lambda root: (root / "usr/lib/x").mkdir(),
    "another mode": lambda root: (root / "etc/mode").chmod(0o4755),
    "another target": lambda root: [(root / "etc/link").unlink(), (root / "etc/link").symlink_to("/etc/mode")],
    "a link in place of a file": lambda root: [(root / "etc/mode").unlink(), (root / "etc/mode").symlink_to("link")],
    "a file under another name": lambda root: (root / "etc/mode").rename(root / "etc/mode2"),
    "a file in another folder": lambda root: (root / "usr/lib/a.py").rename(root / "usr-1/a.py"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_is_found(glovebox, template, change):
    CHANGES[change](template / "root")
    status, (row,), said = verify(glovebox)
    assert status == 1 and not row["same"] and row["measured"] == digest_by_the_page(template)
    assert "template 'tiny' is not what was built" in said


def test_a_name_that_nothing_has_is_not_one_to_build(glovebox, template):
    for name, says in (("nosuch", "there is no template 'nosuch'; see glovebox template list\n"),
                       ("node", "template 'node' has not been built; build it: glovebox template build node\n")):
        done = glovebox("template", "verify", name)
        assert (done.returncode, done.stderr.decode()) == (125, f"glovebox: {says}"), done


def test_how_code_is_run_is_part_of_it(glovebox, template):
    manifest = json.loads((template / "manifest.json").read_text())
    manifest["languages"]["python"]["command"].insert(1, "-i")
    (template / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False))
    assert verify(glovebox)[0] == 1


def test_two_trees_never_have_one_digest(glovebox, template):
    """A target is not ended by NUL: with a line end in it a link and a file would read as another link and file."""
    root = template / "root"
    (root / "usr/lib/link").symlink_to("x\nusr/lib")
    done = glovebox("template", "verify", "tiny")
    assert done.returncode == 125 and b"line end" in done.stderr, done.stderr
    (root / "usr/lib/link").unlink()
    assert verify(glovebox)[0] == 0


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
def test_a_special_file_is_no_empty_file(glovebox, template, kind):
    """It is not opened, and does not pass for the file that was there."""
    place = template / "root/etc/mode"
    place.unlink()
    if kind == "fifo":
        os.mkfifo(place, 0o644)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(place.parent):
            made.bind(place.name)
    elif os.geteuid() == 0:
        os.mknod(place, stat.S_IFCHR | 0o644, os.makedev(1, 3))
    else:
        pytest.skip("only root makes devices")
    assert verify(glovebox)[0] == 1


def measurements(glovebox):
    said = glovebox("log", "search", "--json", "template.measured").stdout.splitlines()
    return [json.loads(line)["facts"] for line in said]


def test_a_service_records_what_it_begins_with(glovebox, template):
    """The event has both digests, and the service says on stderr that they differ; by a setting it does not measure."""
    stated = json.loads((template / "manifest.json").read_text())["digest"]
    for turn, tell in enumerate((True, False, True)):
        with Serving(glovebox, env={"GLOVEBOX_MEASURE_TEMPLATES": str(tell).lower()}, tcp=False) as service:
            end = time.monotonic() + (30 if tell else 1)
            while len(measurements(glovebox)) < (turn + 2) // 2 and time.monotonic() < end:
                time.sleep(0.1)
            found = measurements(glovebox)
            assert len(found) == (1, 1, 2)[turn], service.log.read_text()
            assert found[-1] == {"template": "tiny", "digest": stated,
                                 "measured": stated if turn < 2 else digest_by_the_page(template)}
        assert ("is not what was built" in service.log.read_text()) == (turn == 2)
        (template / "root/usr/lib/a.py").write_text("print('another')\n")
    assert b"VERIFIED" in glovebox("log", "verify").stdout

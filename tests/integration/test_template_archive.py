"""A template as one file: what is exported comes back as it was, and an archive that holds anything else than a
template is refused with one line, with nothing left.

The archives are written here, entry by entry, with a digest that is right unless the case is about it: so what is
refused is refused for its own cause."""

import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import stat
import subprocess
import tarfile
import tempfile
import threading
import time

import pytest

from conftest import Glovebox

pytestmark = pytest.mark.skipif(not shutil.which("tar"), reason="this machine has no tar")

FOLDERS = ["dev", "etc", "home", "home/user", "proc", "run", "tmp", "usr", "usr/bin", "usr/lib", "usr/lib/glovebox",
           "workspace"]


def entry(name, kind=tarfile.DIRTYPE, mode=0o755, content=b"", link=""):
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.linkname, member.mtime = kind, mode, link, 1
    member.size = len(content) if kind == tarfile.REGTYPE else 0
    return member, content


def file(name, content=b"x", mode=0o644):
    return entry(name, tarfile.REGTYPE, mode, content)


def link(name, target):
    return entry(name, tarfile.SYMTYPE, 0o777, link=target)


def plain_entries():
    """A small template that is in order."""
    return [*(entry(f"root/{name}") for name in ["", *FOLDERS]), file("root/usr/bin/tool", b"#!/bin/sh\n", 0o755),
            file("root/etc/hosts", b"127.0.0.1 localhost\n"), link("root/bin", "usr/bin"),
            link("root/usr/bin/sh", "/usr/bin/tool"), link("root/usr/lib/up", "../../etc/hosts")]


def digest_of(entries, manifest):
    """As docs/templates.md says: SHA-256 over all paths, kinds, modes and contents, and over how code is run."""
    total, lines = hashlib.sha256(), []
    for member, content in entries:
        path = member.name[5:].rstrip("/")
        if path and member.name.startswith("root/"):
            kind = {tarfile.DIRTYPE: "d", tarfile.SYMTYPE: "l"}.get(member.type, "f")
            text = {"d": "", "l": member.linkname}.get(kind, hashlib.sha256(content).hexdigest())
            lines.append((path.split("/"), f"{path}\0{kind}{member.mode:o}\0{text}\n"))
    for _, line in sorted(lines, key=lambda one: [part.encode() for part in one[0]]):
        total.update(line.encode())
    for key in ["languages", "env", "zygotes"]:
        total.update(f"{key}\0{json.dumps(manifest[key], separators=(',', ':'))}\n".replace("/", r"\/").encode())
    return f"sha256:{total.hexdigest()}"


def manifest_of(entries, **changed):
    manifest = {"name": "small", "description": "One tool.", "created": "2026-01-01T00:00:00Z", "source": "debian",
                "bytes": 30, "files": 17, "languages": {"sh": {"command": ["/usr/bin/tool"], "file": "main.sh"}}, "env": {},
                "zygotes": {}, "leave_out": [], "packages": [{"name": "tool", "version": "1"}], "python": [],
                "approved": []}
    manifest.update(changed)
    return {"digest": digest_of(entries, manifest), **manifest}


def write_archive(path, entries, manifest=None, texts=None):
    text = texts if texts is not None else json.dumps(manifest or manifest_of(entries)).encode()
    with gzip.open(path, "wb", compresslevel=1) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for member, content in [file("manifest.json", text), *entries]:
            archive.addfile(member, io.BytesIO(content) if member.size else None)
    return path


@pytest.fixture
def glovebox(tmp_path):
    glovebox = Glovebox(tmp_path)
    glovebox.state = tmp_path / "state"
    return glovebox


def templates_in(glovebox):
    folder = glovebox.state / "templates"
    return sorted(os.listdir(folder)) if folder.exists() else []


def refused(glovebox, path, *words):
    done = glovebox("template", "import", path, timeout=120)
    text = done.stderr.decode()
    assert done.returncode != 0 and text.count("\n") == 1 and text.startswith("glovebox: "), (done.returncode, text)
    for word in words:
        assert word in text, text
    assert templates_in(glovebox) == []
    return text


def everything(root):
    found = {}
    for where, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(where, name)
            status = os.lstat(path)
            found[os.path.relpath(path, root)] = (
                status.st_mode, status.st_uid, os.readlink(path) if stat.S_ISLNK(status.st_mode) else
                open(path, "rb").read() if stat.S_ISREG(status.st_mode) else None)
    return found


def test_what_is_exported_comes_back(glovebox, tmp_path):
    done = glovebox("template", "import", write_archive(tmp_path / "a.tar.gz", plain_entries()), "--json")
    assert done.returncode == 0, done.stderr
    manifest = json.loads(done.stdout)
    manifest["created"] = manifest.pop("created_at")  # as the file calls it
    assert (manifest["name"], manifest["files"], manifest["bytes"]) == ("small", 17, 30)
    before = everything(glovebox.state / "templates/small/root")
    assert before["usr/bin/tool"] == (stat.S_IFREG | 0o755, os.geteuid(), b"#!/bin/sh\n")
    for ending in ["gz", "xz", "zst"]:
        out = tmp_path / f"out.tar.{ending}"
        if not shutil.which({"gz": "gzip", "zst": "zstd"}.get(ending, ending)):
            continue
        assert glovebox("template", "export", "small", out).returncode == 0
        first = out.read_bytes()
        assert glovebox("template", "export", "small", out).returncode == 0 and out.read_bytes() == first
        assert glovebox("template", "remove", "small").returncode == 0
        assert glovebox("template", "import", out).returncode == 0
        assert everything(glovebox.state / "templates/small/root") == before
        again = json.loads((glovebox.state / "templates/small/manifest.json").read_text())
        assert {**again, "created": ""} == {**manifest, "created": ""}
    assert not [name for name in os.listdir(tmp_path) if "partial" in name]


def test_an_import_replaces_the_template_of_that_name_in_one_move(glovebox, tmp_path):
    write_archive(tmp_path / "a.tar.gz", plain_entries())
    changed = [*plain_entries(), file("root/etc/new", b"2")]
    write_archive(tmp_path / "b.tar.gz", changed)
    assert glovebox("template", "import", tmp_path / "a.tar.gz").returncode == 0
    missing, done = [], threading.Event()

    def look():
        while not done.wait(0.001):
            if not (glovebox.state / "templates/small/manifest.json").exists():
                missing.append(True)
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        assert glovebox("template", "import", tmp_path / "b.tar.gz").returncode == 0
    finally:
        done.set()
        watcher.join()
    assert not missing and (glovebox.state / "templates/small/root/etc/new").exists()
    assert templates_in(glovebox) == [".previous-small", "small"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mount(2) needs root")
def test_a_state_folder_on_overlayfs_takes_a_template(glovebox, tmp_path):
    """There the files of a layer have another device than folders; a folder of the same file system that is mounted
    in a template is still told from what is its own."""
    archive, state = write_archive(tmp_path / "a.tar.gz", plain_entries()), glovebox.state
    state.mkdir()
    script = ("mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work && mkdir -p lower && "
              f"mount -t overlay -o xino=off,lowerdir=lower,upperdir=/mnt/upper,workdir=/mnt/work none {state} && "
              "\"$1\" template import --state $2 $3 && \"$1\" template verify --state $2 small && "
              "mount --bind $2/templates/small/root/usr $2/templates/small/root/home && "
              "\"$1\" template remove --state $2 small")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", glovebox.program, state, archive], cwd=tmp_path,
                          capture_output=True, timeout=120, text=True)
    if "unknown filesystem type 'overlay'" in done.stderr:
        pytest.skip("this kernel has no overlayfs")
    assert "as it was built" in done.stdout, done
    assert done.returncode != 0 and "something is mounted at 'root/home'" in done.stderr, done


HOSTILE = {
    "name_with_two_dots": ([file("root/../../evil")], ["'..'"]),
    "name_that_ends_in_two_dots": ([entry("root/usr/..")], ["'..'"]),
    "absolute_name": ([file("/tmp/evil")], ["'/'"]),
    "name_outside_of_the_root": ([file("evil")], ["neither in root/"]),
    "link_that_leads_out": ([link("root/out", "../../../etc/passwd")], ["leads out"]),
    "link_that_leads_out_by_one": ([link("root/etc/out", "../..")], ["leads out"]),
    "file_through_a_link": ([link("root/door", "/tmp"), file("root/door/evil")], ["root/door"]),
    "file_through_a_link_inside": ([link("root/door", "etc"), file("root/door/evil")], ["digest"]),
    "hard_link": ([entry("root/hard", tarfile.LNKTYPE, 0o644, link="root/etc/hosts")], ["hard link"]),
    "hard_link_to_the_host": ([entry("root/hard", tarfile.LNKTYPE, 0o644, link="/etc/passwd")], ["hard link"]),
    "character_device": ([entry("root/dev/null", tarfile.CHRTYPE, 0o666)], ["device"]),
    "block_device": ([entry("root/dev/sda", tarfile.BLKTYPE, 0o644)], ["device"]),
    "named_pipe": ([entry("root/pipe", tarfile.FIFOTYPE, 0o644)], ["no file, folder"]),
    "set_user_id": ([file("root/usr/bin/su", b"x", 0o4755)], ["set-user-id"]),
    "set_group_id_folder": ([entry("root/usr/games", mode=0o2755)], ["set-group-id"]),
    "sticky_folder": ([entry("root/var", mode=0o1777)], ["sticky"]),
    "world_writable": ([file("root/etc/free", b"x", 0o666)], ["755 or 644"]),
    "unreadable": ([file("root/etc/dark", b"x", 0o000)], ["755 or 644"]),
    "name_twice": ([file("root/etc/one"), file("root/etc/one", b"y")], ["root/etc/one"]),
    "folder_twice": ([entry("root/etc")], ["each must be there once"]),
    "file_over_a_folder": ([file("root/etc")], ["root/etc"]),
    "manifest_twice": ([file("manifest.json", b"{}")], ["manifest.json"]),
    "folder_that_is_not_listed": ([file("root/a/b/c")], ["each must be there once"]),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_entry_is_refused(glovebox, tmp_path, case):
    added, words = HOSTILE[case]
    before = set(os.listdir("/tmp"))
    entries = plain_entries()
    path = write_archive(tmp_path / "a.tar.gz", [*entries, *added], manifest_of([*entries, *added]))
    refused(glovebox, path, *words)
    assert not any("evil" in name for name in set(os.listdir("/tmp")) - before)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("place", ["dev", "workspace", "proc", "home/user"])
def test_a_mount_point_that_is_a_link_is_refused(glovebox, tmp_path, place):
    entries = [one for one in plain_entries() if one[0].name != f"root/{place}"]
    entries.append(link(f"root/{place}", "/etc"))
    refused(glovebox, write_archive(tmp_path / "a.tar.gz", entries), place)


MANIFESTS = {
    "other_digest": (lambda m: m.update(digest="sha256:" + "0" * 64), ["digest"]),
    "no_digest": (lambda m: m.pop("digest"), ["digest"]),
    "other_environment": (lambda m: m.update(env={"A": "b"}), ["digest"]),
    "name_that_is_a_path": (lambda m: m.update(name="../evil"), ["name must be"]),
    "no_name": (lambda m: m.pop("name"), ["name"]),
    "name_of_another_type": (lambda m: m.update(name=["small"]), ["name"]),
    "language_without_command": (lambda m: m.update(languages={"sh": {"file": "a"}}), ["command"]),
    "language_with_a_path": (lambda m: m.update(languages={"sh": {"command": ["/a"], "file": "../a"}}), ["file"]),
    "environment_of_numbers": (lambda m: m.update(env={"A": [1]}), ["manifest.json"]),
    "unknown_source": (lambda m: m.update(source="elsewhere"), ["base must be"]),
    "packages_of_another_type": (lambda m: m.update(packages={"a": 1}), ["packages"]),
    "escape_sequence_in_a_package": (lambda m: m.update(python=[{"name": "\x1b[2J", "version": "1"}]), ["python"]),
    "row_that_is_null": (lambda m: m.update(approved=[None]), ["approved"]),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_wrong_manifest_is_refused(glovebox, tmp_path, case):
    change, words = MANIFESTS[case]
    entries = plain_entries()
    manifest = manifest_of(entries)
    change(manifest)
    refused(glovebox, write_archive(tmp_path / "a.tar.gz", entries, manifest), *words)


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"null", b"{\"name\":\"small\"}\0", b"[" * 100000, b"x" * (2 << 20)],
                         ids=["empty", "list", "cut_off", "null", "nul_byte", "deep", "large"])
def test_a_manifest_that_is_no_object_is_refused(glovebox, tmp_path, text):
    refused(glovebox, write_archive(tmp_path / "a.tar.gz", plain_entries(), texts=text), "manifest")


def test_a_changed_file_is_refused(glovebox, tmp_path):
    manifest = manifest_of(plain_entries())
    entries = [file("root/etc/hosts", b"127.0.0.2 localhost\n") if one[0].name == "root/etc/hosts" else one
               for one in plain_entries()]
    refused(glovebox, write_archive(tmp_path / "a.tar.gz", entries, manifest), "digest")


@pytest.mark.skipif(os.geteuid() != 0 or not os.path.isdir("/usr/local"), reason="only root can mount a file system, and it needs /usr/local")
def test_programs_of_the_host_may_lie_on_several_file_systems(glovebox, tmp_path):
    """/usr/local as a partition of its own: a user namespace may not show /usr without it."""
    archive = write_archive(tmp_path / "a.tar.gz", plain_entries())
    done = subprocess.run(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /usr/local && exec "$@"', "sh", glovebox.program,
                           "template", "import", archive], env=glovebox.environment(), capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert (glovebox.state / "templates/small/root/usr/bin/tool").exists()


def test_an_archive_need_not_be_compressed(glovebox, tmp_path):
    packed = write_archive(tmp_path / "a.tar.gz", plain_entries())
    plain = tmp_path / "a.tar"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    for round in range(2):
        done = glovebox("template", "import", plain)
        assert done.returncode == 0, done.stderr
        found = everything(glovebox.state / "templates/small/root")
        assert found["usr/bin/tool"] == (stat.S_IFREG | 0o755, os.geteuid(), b"#!/bin/sh\n")
        done = glovebox("template", "export", "small", plain)  # the second round reads what this has written
        assert done.returncode == 0 and plain.read_bytes()[257:262] == b"ustar", done.stderr
    whole = plain.read_bytes()
    assert glovebox("template", "remove", "small").returncode == 0
    for size in (100, 300, 600, 1100, len(whole) // 2):
        plain.write_bytes(whole[:size])
        refused(glovebox, plain)


def test_a_link_in_place_of_the_manifest_is_refused(glovebox, tmp_path):
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for member, content in [link("manifest.json", "/etc/passwd"), *plain_entries()]:
            archive.addfile(member, io.BytesIO(content) if member.size else None)
    refused(glovebox, path, "manifest.json")


def test_a_bomb_is_refused_before_it_is_unpacked(glovebox, tmp_path):
    path = tmp_path / "a.tar.gz"
    big, _ = file("root/etc/big")
    big.size = 17 << 30
    with gzip.open(path, "wb", compresslevel=1) as packed:
        packed.write(file("manifest.json", b"{}")[0].tobuf() + b"{}" + b"\0" * 510 + big.tobuf())
        packed.write(b"\0" * (8 << 20))
    began = time.monotonic()
    refused(glovebox, path, "16 GiB")
    assert time.monotonic() - began < 60


@pytest.mark.skipif(os.geteuid() != 0, reason="a disk of its own needs mount(2)")
def test_what_the_disk_has_no_room_for_is_refused(glovebox, tmp_path):
    """Each file fits; together they do not, or their blocks do not."""
    glovebox.state.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "tmpfs", glovebox.state], check=True)
    try:
        for name, count, size in (("large", 5, 1 << 20), ("many", 2000, 1)):
            more = [file(f"root/etc/{n}", os.urandom(size)) for n in range(count)]
            path = write_archive(tmp_path / f"{name}.tar.gz", [*plain_entries(), *more])
            refused(glovebox, path, "has room for", "--state DIR")
    finally:
        subprocess.run(["umount", "-l", glovebox.state], check=True)


@pytest.mark.parametrize("content", [b"", b"not an archive", b"\x1f\x8b", b"\x1f\x8b" + b"\xff" * 500,
                                     b"\x28\xb5\x2f\xfd" + b"\0" * 100, b"PK\x03\x04" + b"\0" * 100,
                                     gzip.compress(b"no tar" * 1000), gzip.compress(b"")],
                         ids=["empty", "text", "magic_only", "broken_gzip", "broken_zstd", "zip", "gzip_of_text",
                              "gzip_of_nothing"])
def test_what_is_no_archive_is_refused(glovebox, tmp_path, content):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(content)
    refused(glovebox, path)


def test_an_archive_that_is_cut_off_is_refused(glovebox, tmp_path):
    whole = write_archive(tmp_path / "a.tar.gz", [*plain_entries(), file("root/etc/r", os.urandom(5000))]).read_bytes()
    for share in (1, 2, 3):
        path = tmp_path / "cut.tar.gz"
        path.write_bytes(whole[:len(whole) * share // 4])
        refused(glovebox, path)


def test_files_that_cannot_be_archives_are_refused(glovebox, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(glovebox, tmp_path / "pipe", "no file")
    refused(glovebox, tmp_path, "no file")
    refused(glovebox, tmp_path / "missing.tar.gz", "No such file")


def test_an_export_says_what_is_wrong(glovebox, tmp_path):
    def fails(*words, says):
        done = glovebox("template", "export", *words)
        text = done.stderr.decode()
        assert done.returncode != 0 and text.count("\n") == 1 and says in text, text
    fails("small", tmp_path / "a.tar.gz", says="no template")
    assert glovebox("template", "import", write_archive(tmp_path / "a.tar.gz", plain_entries())).returncode == 0
    fails("small", says="to which file")
    fails("small", tmp_path / "a.zip", says=".tar.gz")
    fails("small", tmp_path / "none/a.tar.gz", says="No such file")
    (glovebox.state / "templates/small/root/etc/hosts").write_bytes(b"other")
    fails("small", tmp_path / "b.tar.gz", says="build it again")
    assert sorted(os.listdir(tmp_path)) == ["a.tar.gz", "state"]


def test_an_imported_template_of_this_machine_runs_code(tmp_path):
    own = Glovebox(tmp_path)
    if own("template", "export", "minimal", tmp_path / "minimal.tar.gz", timeout=300).returncode != 0:
        pytest.skip("template minimal has not been built")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # sandboxes have ids of their own
        copy = Glovebox(tmp_path)
        copy.state = pathlib.Path(folder)
        assert copy("template", "import", tmp_path / "minimal.tar.gz", timeout=300).returncode == 0
        done = copy.run("--policy", "minimal", "-c", "print(6 * 7)")
        assert done.stdout == b"42\n", done

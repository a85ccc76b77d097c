"""Speaks to glovebox-init as gloveboxd does: files, tars, watches, terminals and ports of a session, down to the frames
(src/contract/agent.h). What the doors make of them is in test_session_files.py and its neighbours."""

import errno
import io
import os
import socket
import struct
import tarfile
import time

import pytest
from conftest import BUILD, STATE
from spawner_client import MIB, Gone, Spawner
from zygote_rig import enum_of

KINDS = enum_of("agent.h", "agent_kind")
(DATA, END, START, SIGNAL, LIST, MAKE, MOVE, REMOVE, RESIZE, CREDIT, READ, WRITE, STAT, PACK, UNPACK, WATCH, CONNECT,
 CANCEL, IMAGE, SAVE, LOAD, HELLO, DONE, STARTED, OUTPUT, EXITED, STOPPED, FILE, SKIPPED, ENTRY, OPENED, CHANGE) = (
    KINDS[f"AGENT_{name}"] for name in (
        "DATA", "END", "START", "SIGNAL", "LIST", "MAKE", "MOVE", "REMOVE", "RESIZE", "CREDIT", "READ", "WRITE", "STAT",
        "PACK", "UNPACK", "WATCH", "CONNECT", "CANCEL", "IMAGE", "SAVE", "LOAD", "HELLO", "DONE", "STARTED", "OUTPUT",
        "EXITED", "STOPPED", "FILE", "SKIPPED", "ENTRY", "OPENED", "CHANGE"))
ALL = (1 << 64) - 1
TERMINAL, STDIN_PIPE, BY_CREDIT = 8, 4, 16


class Inside:
    """One sandbox and the operations in it."""

    def __init__(self, sandbox):
        self.sandbox, self.number, self.kept = sandbox, 100, []
        assert sandbox.read_frame()[0] == HELLO

    def send(self, kind, number, payload=b""):
        self.sandbox.inside.sendall(struct.pack("<IHHII", len(payload), kind, 0, number, 0) + payload)

    def send_with(self, kind, number, *descriptors):
        socket.send_fds(self.sandbox.inside, [struct.pack("<IHHII", 0, kind, 0, number, 0)], descriptors)

    def save(self):
        """What can be written there, as a tar."""
        ours, theirs = os.pipe()
        self.number += 1
        self.send_with(SAVE, self.number, theirs)
        os.close(theirs)
        with open(ours, "rb") as pipe:
            tar = pipe.read()
        return tar, self.done(self.number)

    def load(self, tar):
        theirs, ours = os.pipe()
        self.number += 1
        self.send_with(LOAD, self.number, theirs)
        os.close(theirs)
        try:
            with open(ours, "wb") as pipe:
                pipe.write(tar)
        except BrokenPipeError:
            pass
        return self.done(self.number)[1]

    def begin(self, kind, payload):
        self.number += 1
        self.send(kind, self.number, payload)
        return self.number

    def until(self, number, *kinds):
        """Frames of one operation, up to one of these kinds."""
        seen = []
        while True:
            at = next((i for i, frame in enumerate(self.kept) if frame[2] == number), None)
            kind, stream, whose, body = self.sandbox.read_frame() if at is None else self.kept.pop(at)
            if whose != number:
                self.kept.append((kind, stream, whose, body))
                continue
            seen.append((kind, stream, body))
            if kind in kinds:
                return seen

    def done(self, number):
        """Frames up to DONE, and the errno it carries."""
        seen = self.until(number, DONE)
        return seen[:-1], struct.unpack_from("<i", seen[-1][2])[0]

    def ask(self, kind, payload):
        return self.done(self.begin(kind, payload))

    def read(self, path, offset=0, length=ALL, credit=ALL):
        seen, os_error = self.ask(READ, struct.pack("<QQQ", offset, length, credit) + path)
        return b"".join(body for kind, _, body in seen if kind == DATA) if os_error == 0 else os_error

    def write(self, path, content, mode=0, flags=0):
        number = self.begin(WRITE, struct.pack("<II", mode, flags) + path)
        for at in range(0, len(content), 65536):
            self.send(DATA, number, content[at:at + 65536])
        self.send(END, number)
        return self.done(number)[1]

    def unpack(self, tar, path=b""):
        number = self.begin(UNPACK, path)
        for at in range(0, len(tar), 65536):
            self.send(DATA, number, tar[at:at + 65536])
        self.send(END, number)
        seen, os_error = self.done(number)
        return [body[16:] for kind, _, body in seen if kind == SKIPPED], os_error

    def names(self, path=b"", depth=1, most=1000):
        seen, os_error = self.ask(LIST, struct.pack("<II", depth, most) + path)
        assert os_error in (0, errno.E2BIG), os.strerror(os_error)
        return sorted(entry_of(body)["path"] for kind, _, body in seen if kind == ENTRY)

    def start(self, *command, flags=0, rows=24, columns=80):
        strings = [b"/workspace", *(text.encode() for text in command), b"PATH=/usr/bin:/bin", b"TERM=xterm"]
        number = self.begin(START, struct.pack("<IHHHHI", flags, len(command), 2, rows, columns, 0) +
                            b"".join(text + b"\0" for text in strings))
        seen = self.until(number, STARTED, DONE)
        assert seen[-1][0] == STARTED, seen[-1][2][8:]
        return number

    def output(self, number):
        """All that it prints, and how it ends."""
        seen = self.until(number, EXITED)
        return b"".join(body for kind, _, body in seen if kind == OUTPUT), struct.unpack("<ii", seen[-1][2])

    def said(self, number, words):
        """Its output until the words are in it."""
        text = b""
        while words not in text:
            kind, _, body = self.until(number, OUTPUT, EXITED)[-1]
            assert kind == OUTPUT, text
            text += body
        return text


def entry_of(body):
    size, mtime, mode, target, depth, length = struct.unpack_from("<QqIIII", body)
    return {"size": size, "mtime": mtime, "mode": mode, "target_mode": target, "depth": depth,
            "path": body[32:32 + length], "target": body[32 + length:]}


@pytest.fixture(scope="module")
def spawner(tmp_path_factory):
    work = tmp_path_factory.mktemp("inside")
    running = Spawner(BUILD, STATE / "templates" / "python" / "root", work, group_name=f"glovebox-inside-{os.getpid()}")
    running.hello()
    yield running
    running.close()
    running.forget_groups()


@pytest.fixture
def inside(spawner):
    sandbox = spawner.build(disk=32 * MIB, inodes=4096, processes=32)
    yield Inside(sandbox)
    sandbox.close()
    spawner.release(sandbox)


@pytest.fixture
def server(spawner):
    """A sandbox with a loopback."""
    sandbox = spawner.build(disk=32 * MIB, processes=32, network=1)
    yield Inside(sandbox)
    sandbox.close()
    spawner.release(sandbox)


# --- files ---

def test_a_file_is_written_whole_and_read_in_ranges(inside):
    content = bytes(range(256)) * 1024
    assert inside.write(b"a/b/c.bin", content) == 0
    assert inside.read(b"a/b/c.bin") == content
    assert inside.read(b"/workspace/a/b/c.bin", 1000, 300) == content[1000:1300]
    assert inside.read(b"a/b/c.bin", len(content) + 5) == b""
    assert inside.names(depth=5) == [b"a", b"a/b", b"a/b/c.bin"]


def test_a_reader_gets_no_more_than_it_asked_for(inside):
    assert inside.write(b"f", b"x" * 200000) == 0
    number = inside.begin(READ, struct.pack("<QQQ", 0, ALL, 70000) + b"f")
    got = 0
    while got < 70000:
        got += sum(len(body) for kind, _, body in inside.until(number, DATA) if kind == DATA)
    assert got == 70000
    assert inside.names() == [b"f"], "others go on meanwhile"
    inside.send(CREDIT, number, struct.pack("<Q", 1 << 30))
    seen, os_error = inside.done(number)
    assert os_error == 0 and got + sum(len(body) for kind, _, body in seen if kind == DATA) == 200000


def test_a_file_that_is_given_up_leaves_the_old_one(inside):
    assert inside.write(b"f", b"old") == 0
    number = inside.begin(WRITE, struct.pack("<II", 0, 0) + b"f")
    inside.send(DATA, number, b"new")
    inside.send(CANCEL, number)
    assert inside.done(number)[1] == errno.ECANCELED
    assert inside.read(b"f") == b"old" and inside.names() == [b"f"]


def test_a_full_disk_is_named_and_leaves_the_old_file(inside):
    assert inside.write(b"f", b"old") == 0
    assert inside.write(b"f", bytes(40 * MIB)) in (errno.ENOSPC, errno.EFBIG)
    assert inside.read(b"f") == b"old" and inside.names() == [b"f"]


@pytest.mark.parametrize("path,expected", [
    (b"../etc/passwd", errno.EINVAL), (b"/workspace/../etc/passwd", errno.EINVAL), (b"a//b", errno.EINVAL),
    (b"./a", errno.EINVAL), (b"a/", errno.EINVAL), (b"/etc/shadow-", errno.ENOENT), (b"/proc/1/status", errno.EACCES),
    (b"/proc/self/environ", errno.EACCES), (b"/dev/zero", errno.EINVAL), (b"missing", errno.ENOENT),
    (b"x" * 5000, errno.ENAMETOOLONG), (b"/etc", errno.EISDIR)])
def test_a_path_is_one_or_is_refused(inside, path, expected):
    assert inside.read(path) == expected


@pytest.mark.parametrize("name", [b"new\nline", b"\xff\xfe", b"tab\t", b" ", b"-rf", "\u00fc".encode(), b"a'b\"c", b"\x01"])
def test_any_bytes_can_be_a_name(inside, name):
    assert inside.write(name, b"1") == 0
    assert inside.names() == [name] and inside.read(name) == b"1"
    assert inside.ask(MOVE, name + b"\0" + b"folder/" + name)[1] == 0
    assert inside.ask(REMOVE, b"folder")[1] == 0 and inside.names() == []


def test_links_lead_nowhere_but_inside(inside):
    number = inside.start("sh", "-c", "ln -s /etc/hostname h; ln -s /proc/1/mem m; ln -s ../../../../../etc/passwd p;"
                          "ln -s /nowhere n; mkdir d; ln -s d e; echo 1 > d/x")
    inside.output(number)
    assert inside.read(b"p").startswith(b"root:") or b"user" in inside.read(b"p"), "the template's own, not the host's"
    assert inside.read(b"m") in (errno.EACCES, errno.ENOENT)
    assert inside.read(b"e/x") == b"1\n"
    seen, _ = inside.ask(STAT, b"n")
    assert entry_of(seen[0][2])["target"] == b"/nowhere" and entry_of(seen[0][2])["target_mode"] == 0
    assert inside.write(b"p", b"mine") == 0, "the link is replaced, what it leads to is not touched"
    assert inside.read(b"p") == b"mine"
    assert inside.write(b"/etc/new", b"x") in (errno.EROFS, errno.EACCES)


def test_a_listing_says_when_it_is_cut(inside):
    for name in (b"a", b"b", b"c"):
        assert inside.write(name, b"") == 0
    seen, os_error = inside.ask(LIST, struct.pack("<II", 1, 2))
    assert os_error == errno.E2BIG and len(seen) == 2


# --- tars ---

def tar_of(*members, format=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        for name, content, more in members:
            info = tarfile.TarInfo(name)
            for key, value in more.items():
                setattr(info, key, value)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_tar_comes_out_as_it_went_in(inside, kind):
    members = [("a.txt", b"hello", {"mode": 0o640, "mtime": 1000000000}), ("d", b"", {"type": tarfile.DIRTYPE, "mode": 0o755}),
               ("d/" + "l" * 90 + "/" + "m" * 90, b"x" * 100000, {}), ("d/s", b"", {"type": tarfile.SYMTYPE, "linkname": "../a.txt"})]
    assert inside.unpack(tar_of(*members, format=kind)) == ([], 0)
    seen, os_error = inside.ask(PACK, struct.pack("<Q", ALL))
    assert os_error == 0
    packed = tarfile.open(fileobj=io.BytesIO(b"".join(body for kind, _, body in seen if kind == DATA)))
    found = {info.name: info for info in packed}
    assert packed.extractfile("a.txt").read() == b"hello"
    assert found["a.txt"].mode == 0o640 and found["a.txt"].mtime == 1000000000
    assert packed.extractfile(members[2][0]).read() == b"x" * 100000
    assert found["d/s"].issym() and found["d/s"].linkname == "../a.txt" and found["d"].isdir()


@pytest.mark.parametrize("member", [
    ("../out", b"x", {}), ("a/../../out", b"x", {}), ("x" * 300, b"x", {}),
    ("h", b"", {"type": tarfile.LNKTYPE, "linkname": "../../etc/passwd"})])
def test_a_tar_with_a_path_that_leads_out_is_refused(inside, member):
    assert inside.unpack(tar_of(("first", b"1", {}), member))[1] == errno.EINVAL
    assert inside.names(b"/") == Inside.names(inside, b"/") and b"out" not in inside.names(b"/")


def test_a_tar_does_not_go_through_its_own_links(inside):
    tar = tar_of(("l", b"", {"type": tarfile.SYMTYPE, "linkname": "/tmp"}), ("l/x", b"1", {}))
    assert inside.unpack(tar)[1] in (errno.ELOOP, errno.ENOTDIR)
    assert inside.names(b"/tmp") == []


def test_devices_of_a_tar_are_skipped_and_reported(inside):
    tar = tar_of(("dev", b"", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}), ("f", b"1", {}))
    assert inside.unpack(tar) == ([b"dev"], 0) and inside.names() == [b"f"]


@pytest.mark.parametrize("bytes_of_it", [b"x" * 512, b"\x1f\x8b" + bytes(600), tar_of(("f", b"1" * 5000, {}))[:2000]])
def test_what_is_no_tar_is_refused(inside, bytes_of_it):
    assert inside.unpack(bytes_of_it)[1] == errno.EINVAL


def test_a_name_of_bytes_comes_through_a_tar(inside):
    assert inside.write(b"\xff\n", b"1") == 0
    seen, _ = inside.ask(PACK, struct.pack("<Q", ALL))
    assert inside.unpack(b"".join(body for kind, _, body in seen if kind == DATA), b"copy") == ([], 0)
    assert inside.names(b"copy") == [b"\xff\n"]


# --- watches ---

def changes(inside, number, count):
    found = []
    while len(found) < count:
        _, _, body = inside.until(number, CHANGE, DONE)[-1]
        found.append((struct.unpack_from("<QqII", body)[3], body[24:]))
    return found


def test_a_watch_follows_folders_that_are_made(inside):
    number = inside.begin(WATCH, struct.pack("<QII", ALL, 1, 0))
    inside.until(number, OPENED)
    assert inside.ask(MAKE, b"d/e")[1] == 0
    inside.output(inside.start("sh", "-c", "sleep 0.2; echo 1 > d/e/f; mv d/e/f g; rm g"))
    seen = []
    while (3, b"g") not in seen:
        seen += changes(inside, number, 1)
    assert {(1, b"d"), (1, b"d/e"), (1, b"d/e/f"), (2, b"d/e/f"), (4, b"d/e/f"), (1, b"g"), (3, b"g")} <= set(seen)
    inside.send(CANCEL, number)
    assert inside.done(number)[1] == errno.ECANCELED


def test_unread_changes_are_lost_and_the_loss_is_reported(inside):
    number = inside.begin(WATCH, struct.pack("<QII", 1, 0, 0))
    inside.until(number, OPENED)
    inside.output(inside.start("python3", "-c", "import os\nfor i in range(20000): os.close(os.open(f'f{i % 2}', os.O_CREAT)); os.unlink(f'f{i % 2}')"))
    inside.send(CREDIT, number, struct.pack("<Q", 1 << 40))
    seen = []
    while not seen or seen[-1][0] != 6:
        seen += changes(inside, number, 1)


# --- programs and terminals ---

def test_a_terminal_is_one(inside):
    number = inside.start("sh", "-c", "tty; stty size; test -t 0 && echo yes", flags=TERMINAL, rows=33, columns=99)
    text, ended = inside.output(number)
    assert text.split() == [b"/dev/pts/0", b"33", b"99", b"yes"] and ended == (0, 0)


def test_control_c_and_resize_reach_the_program_in_front(inside):
    number = inside.start("bash", "--norc", "-i", flags=TERMINAL | BY_CREDIT)
    inside.send(DATA, number, b"PS1='> '; echo rea'dy'\n")
    inside.said(number, b"ready")
    inside.send(DATA, number, b"echo st'arted'; sleep 100\n")
    inside.said(number, b"started")
    time.sleep(0.5)  # until sleep is in front: what comes earlier is bash's own
    inside.send(DATA, number, b"\x03")
    inside.said(number, b"^C")
    inside.send(RESIZE, number, struct.pack("<HH", 11, 22))
    inside.send(DATA, number, b"stty size\n")
    inside.said(number, b"11 22")
    inside.send(DATA, number, b"sleep 100 &\njobs; exit 7\n")
    text, ended = inside.output(number)
    assert b"Running" in text and ended == (7, 0)


def test_output_by_credit_holds_the_program_and_loses_nothing(inside):
    number = inside.start("sh", "-c", "head -c 3000000 /dev/zero; echo end", flags=BY_CREDIT)
    got = 0
    while got < 262144:
        got += len(inside.until(number, OUTPUT)[-1][2])
    assert got == 262144
    assert inside.names() == []
    inside.send(CREDIT, number, struct.pack("<Q", 1 << 40))
    text, ended = inside.output(number)
    assert got + len(text) == 3000004 and ended == (0, 0)


def test_the_end_of_a_program_is_reported_after_its_output(inside):
    number = inside.start("sh", "-c", "head -c 300000 /dev/zero", flags=BY_CREDIT)
    got = 0
    while got < 262144:
        got += len(inside.until(number, OUTPUT)[-1][2])
    inside.output(inside.start("sleep", "0.3"))
    inside.send(CREDIT, number, struct.pack("<Q", 1 << 40))
    text, ended = inside.output(number)
    assert got + len(text) == 300000 and ended == (0, 0)


def test_stdin_is_a_pipe(inside):
    number = inside.start("cat", flags=STDIN_PIPE)
    inside.send(DATA, number, b"one\n")
    inside.said(number, b"one\n")
    inside.send(DATA, number, b"two\n")
    inside.send(END, number)
    assert inside.output(number) == (b"two\n", (0, 0))
    inside.send(DATA, number, b"late")
    assert inside.names() == [], "what comes too late is no mistake"


def test_a_signal_reaches_the_whole_group(inside):
    number = inside.start("sh", "-c", "sleep 100 & sleep 100; wait")
    inside.send(SIGNAL, number, struct.pack("<II", 15, 1))
    assert inside.output(number)[1] == (-1, 15)


# --- all that can be written, through a pipe ---

@pytest.fixture
def other(spawner):
    sandbox = spawner.build(disk=8 * MIB, inodes=256, processes=32)
    yield Inside(sandbox)
    sandbox.close()
    spawner.release(sandbox)


def test_what_can_be_written_comes_whole_into_another_sandbox(inside, other):
    big = os.urandom(3 * MIB + 5)
    assert inside.write(b"deep/er/big.bin", big, mode=0o751) == 0
    assert inside.write(b"/tmp/t", b"tmp") == inside.write(b"/home/user/.rc", b"rc") == 0
    assert inside.write(b"/dev/shm/s", b"shm") == inside.write(b"/run/r", b"run") == 0
    assert inside.write(b"/workspace/\xff\n" + b"n" * 180, b"name") == 0
    assert inside.write(b"/tmp/unreadable", b"x", mode=0o200) == 0
    assert inside.ask(MAKE, b"/workspace/empty")[1] == 0
    program = inside.start("bash", "-c", "ln -s ../tmp/t link; mkfifo fifo; rm -r ~/.config; chmod 1 /workspace/empty")
    inside.output(program)
    assert other.write(b"/workspace/old/one", b"goes") == other.write(b"/tmp/t/was/a/folder", b"goes") == 0
    tar, (frames, os_error) = inside.save()
    assert os_error == 0
    assert sorted(body[16:] for kind, _, body in frames if kind == SKIPPED) == [
        b"tmp/unreadable", b"workspace/empty", b"workspace/fifo"]
    assert {name.split("/")[0] for name in tarfile.open(fileobj=io.BytesIO(tar)).getnames()} == {
        "workspace", "tmp", "home", "dev", "run"}
    assert other.load(tar) == 0
    for place, depth in ((b"/workspace", 5), (b"/tmp", 5), (b"/home/user", 5), (b"/dev/shm", 5), (b"/run", 5)):
        names = [name for name in inside.names(place, depth) if name not in (b"unreadable", b"empty", b"fifo")]
        assert other.names(place, depth) == names, place
    assert other.read(b"deep/er/big.bin") == big and other.read(b"link") == b"tmp"
    kept = entry_of(other.ask(STAT, b"deep/er/big.bin")[0][0][2])
    assert kept["mode"] & 0o777 == 0o751


def test_files_that_do_not_fit_or_are_no_tar_are_reported(inside, other):
    assert inside.write(b"big", bytes(9 * MIB)) == 0
    assert other.load(inside.save()[0]) in (errno.ENOSPC, errno.EFBIG)
    assert other.load(b"no tar" * 1000) == errno.EINVAL
    assert other.load(inside.save()[0][:100000]) == errno.EINVAL
    for member in ("/etc/x", "usr/x", "../x", "proc/1/x"):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as tar:
            tar.addfile(tarfile.TarInfo(member), None)
        assert other.load(file.getvalue()) != 0, member


def test_an_unread_pipe_does_not_block_other_operations(inside):
    assert inside.write(b"big", bytes(4 * MIB)) == 0
    kept, theirs = os.pipe()
    inside.send_with(SAVE, 900, theirs)
    assert inside.read(b"big") == bytes(4 * MIB)
    inside.send(CANCEL, 900)
    assert inside.done(900)[1] == errno.ECANCELED
    inside.send_with(SAVE, 901, theirs)
    os.close(kept)
    assert inside.done(901)[1] == errno.EPIPE
    for kind in (SAVE, LOAD, IMAGE):
        assert inside.ask(kind, b"")[1] != 0, "it needs a pipe"
        assert inside.ask(kind, b"")[1] != 0
    before = inside.output(inside.start("sh", "-c", "ls /proc/1/fd 2>/dev/null | wc -l"))
    for _ in range(50):  # more than one, and with orders that want none
        socket.send_fds(inside.sandbox.inside, [struct.pack("<IHHII", 0, LIST, 0, 902, 0)], [theirs, theirs])
        inside.done(902)
        inside.send_with(IMAGE, 903, theirs)
        assert inside.done(903)[1] != 0
    os.close(theirs)
    assert len(os.listdir(f"/proc/{inside.sandbox.pid}/fd")) < 40
    assert inside.output(inside.start("sh", "-c", "ls /proc/1/fd 2>/dev/null | wc -l")) == before


# --- ports ---

SERVER = """
import socket
s = socket.create_server(("127.0.0.1", 8080)); print("up", flush=True)
while True:
    c, _ = s.accept()
    data = c.makefile("rb").read()
    c.sendall(data[::-1]); c.close()
"""


def test_a_server_on_the_loopback_is_reached(server):
    program = server.start("python3", "-c", SERVER)
    server.said(program, b"up")
    number = server.begin(CONNECT, struct.pack("<QHHHH", ALL, 8080, 0, 0, 0))
    server.until(number, OPENED)
    server.send(DATA, number, b"hello")
    server.send(END, number)
    seen, os_error = server.done(number)
    assert os_error == 0 and b"".join(body for kind, _, body in seen if kind == DATA) == b"olleh"
    assert server.ask(CONNECT, struct.pack("<QHHHH", ALL, 8081, 0, 0, 0))[1] == errno.ECONNREFUSED


def test_without_network_there_is_no_port(inside):
    assert inside.ask(CONNECT, struct.pack("<QHHHH", ALL, 8080, 0, 0, 0))[1] == errno.ENETUNREACH


def test_init_outlives_all_of_it(inside):
    for kind in (READ, WRITE, STAT, PACK, UNPACK, WATCH, CONNECT, LIST, MOVE, 200):
        inside.send(kind, 7, b"")
    for _ in range(40):
        inside.begin(WRITE, struct.pack("<II", 0, 0) + b"f")
        inside.begin(WATCH, struct.pack("<QII", ALL, 1, 0))
    assert isinstance(inside.read(b"nothing"), int)
    with pytest.raises(Gone):
        inside.sandbox.read_frame(0.2)
        while True:
            inside.sandbox.read_frame(0.2)

"""`glovebox mcp --files`: copies between one folder of the user and sessions, only below that folder, without following
links, and complete."""

import json
import os
import socket
import threading

import pytest
from conftest import Glovebox
from mcp_client import META, NEWEST, Bridge, text_of
from serving import Serving, let_others_in, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
MAX = 16 << 20


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("mcp-files"))
    state_of_its_own(glovebox)
    with Serving(glovebox) as serving:
        yield serving


@pytest.fixture(name="folder")
def folder_(tmp_path):
    """The user's folder, next to something that is none of it."""
    let_others_in(tmp_path)
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "sales.csv").write_text("month,amount\njan,3\nfeb,4\n")
    (tmp_path / "secret").write_text("what nobody may read")
    return folder


class Files(Bridge):
    """A `glovebox mcp --files`, in an era of the protocol."""

    def __init__(self, service, option, era="handshake"):
        super().__init__(service.glovebox, "--socket", service.socket, "--files", option)
        self.era, self.count = era, 1
        if era == "handshake":
            self.ask(0, "initialize", HELLO)

    def request(self, method, params=None):
        self.count += 1
        meta = {"_meta": {META + "protocolVersion": NEWEST, META + "clientCapabilities": {}}} if self.era != "handshake" else {}
        return self.ask(self.count, method, (params or {}) | meta)

    def tool(self, name, **arguments):
        answer = self.request("tools/call", {"name": name, "arguments": {"session": "mine"} | arguments})
        assert "result" in answer, answer
        return answer["result"]

    def names(self):
        return {tool["name"] for tool in self.request("tools/list")["result"]["tools"]}


@pytest.fixture(name="files")
def files_(service, folder):
    bridge = Files(service, f"{folder}:rw")
    yield bridge
    assert bridge.end() == 0


@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_files_go_in_and_out(service, folder, era):
    bridge = Files(service, f"{folder}:rw", era)
    told = bridge.tool("file_import", file="sales.csv")
    assert not told["isError"] and (told["structuredContent"]["path"], told["structuredContent"]["bytes"]) == ("sales.csv", 25)
    code = "import csv\nrows = list(csv.reader(open('sales.csv')))\nopen('sum.txt', 'w').write(str(sum(int(r[1]) for r in rows[1:])))"
    assert not bridge.tool("run_code", code=code)["isError"]
    told = bridge.tool("file_export", path="sum.txt", file="sub/sum.txt")
    assert text_of(told).startswith("1 bytes are in sub/sum.txt of the user's folder; session ses_"), told
    assert "glovebox/content" not in json.dumps(told) and (folder / "sub/sum.txt").read_text() == "7"
    assert bridge.end() == 0


def test_any_bytes_come_back_as_they_were(files, folder):
    for size in (0, 1, 2, 3, 4095, 3_000_001):
        raw = os.urandom(size)
        (folder / "in.bin").write_bytes(raw)
        assert not files.tool("file_import", file="in.bin", path="kept.bin")["isError"]
        told = files.tool("file_export", path="kept.bin", file="out.bin", replace=True)
        assert not told["isError"] and (folder / "out.bin").read_bytes() == raw, text_of(told)


def test_offered_are_only_tools_that_the_option_allows(service, folder):
    reads, writes = Files(service, str(folder)), Files(service, f"{folder}:rw", "stateless")
    assert {"file_import", "file_export"} & reads.names() == {"file_import"}
    assert {"file_import", "file_export"} <= writes.names()
    bridge = Bridge(service.glovebox, "--socket", service.socket)
    bridge.ask(0, "initialize", HELLO)
    assert not {"file_import", "file_export"} & {tool["name"] for tool in bridge.ask(1, "tools/list")["result"]["tools"]}
    for asked, name in ((reads, "file_export"), (bridge, "file_import")):
        call = {"name": name, "arguments": {"file": "sales.csv", "path": "x", "session": "mine"}}
        assert asked.ask(2, "tools/call", call)["error"]["code"] == -32602
    assert not (folder / "x").exists()
    for client in (reads, writes, bridge):
        assert client.end() == 0


@pytest.mark.parametrize("option", ["/no/such/folder", "/etc/passwd:rw", ":rw:rw"])
def test_a_path_that_is_no_folder_is_reported_at_the_start(service, option):
    bridge = Bridge(service.glovebox, "--socket", service.socket, "--files", option)
    assert bridge.process.wait(20) == 125 and b"--files: open the folder" in bridge.process.stderr.read()


# --- what is not beneath the folder, or no file -----------------------------------------------------------------------

def lay_traps(folder):
    """Names in the folder, or ways out of it, that are no regular file of it."""
    (folder / "link").symlink_to("../secret")
    (folder / "inner").symlink_to("sales.csv")
    (folder / "way").symlink_to("..")
    (folder / "proc").symlink_to("/proc/self")
    os.mkfifo(folder / "fifo")
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(folder)
    server.bind("socket")
    os.chdir(here)
    server.close()
    os.link(folder.parent / "secret", folder / "hard")
    names = ["../secret", "sub/../../secret", str(folder.parent / "secret"), str(folder / "sales.csv"), "link", "inner", "way/secret",
             "proc/environ", "fifo", "socket", "hard", "sub", ".", "..", "no such file", "a\nb", "sales.csv/", "sub//../../secret"]
    if os.geteuid() == 0:
        os.mknod(folder / "device", 0o600 | 0o020000, os.makedev(1, 5))
        names.append("device")
    return names


def test_nothing_else_is_read(files, folder):
    for name in lay_traps(folder):
        told = files.tool("file_import", file=name, path="taken")
        assert told["isError"] and (folder.parent / "secret").read_text() not in text_of(told), (name, told)
        assert "\n" not in text_of(told) and text_of(told).split(":")[0] in ("policy", "not_found", "bad_request"), told
    assert files.tool("file_read", path="taken")["isError"], "nothing has reached the session"


def test_nothing_else_is_written(files, folder):
    files.tool("file_write", path="made", content="from a session")
    traps = [name for name in lay_traps(folder) if name not in ("hard", "a\nb", "no such file")]
    for name in [*traps, ".bashrc", ".git/config", "sub/.envrc", "sub/", "sub/new/x", "way/new", "\x00", "x" * 300]:
        for replace in (False, True):
            told = files.tool("file_export", path="made", file=name, replace=replace)
            assert told["isError"] and "\n" not in text_of(told), (name, told)
    assert not files.tool("file_export", path="made", file="hard", replace=True)["isError"], "the other name keeps its file"
    told = files.tool("file_export", path="made", file="a\nb")
    assert "a\\x0ab" in text_of(told) and (folder / "a\nb").read_text() == "from a session"
    assert (folder.parent / "secret").read_text() == "what nobody may read" and (folder / "link").is_symlink() and (folder / "inner").is_symlink()
    assert (folder / "sales.csv").read_text().startswith("month")
    assert sorted(path.name for path in folder.parent.iterdir()) == ["secret", "work"]
    assert not [path for path in folder.rglob(".glovebox-*")], "nothing half written is left"


def test_an_existing_file_is_replaced_only_on_request(files, folder):
    files.tool("file_write", path="made", content="new")
    told = files.tool("file_export", path="made", file="sales.csv")
    assert told["isError"] and text_of(told).startswith("conflict: 'sales.csv' exists") and "month" in (folder / "sales.csv").read_text()
    assert not files.tool("file_export", path="made", file="sales.csv", replace=True)["isError"]
    assert (folder / "sales.csv").read_text() == "new" and (folder / "sales.csv").stat().st_mode & 0o111 == 0


def test_a_file_that_is_too_large_is_refused(files, folder):
    (folder / "huge").touch()
    os.truncate(folder / "huge", 1 << 40)
    assert text_of(files.tool("file_import", file="huge")).startswith(f"too_large: 'huge' has {1 << 40} bytes; at most {MAX}")
    os.truncate(folder / "huge", MAX)
    assert files.tool("file_import", file="huge")["structuredContent"]["bytes"] == MAX
    files.tool("run_command", command="truncate -s +1 huge")
    told = files.tool("file_export", path="huge", file="back")
    assert told["isError"] and text_of(told).startswith("too_large") and not (folder / "back").exists()


def test_names_that_change_meanwhile_never_lead_out(files, folder):
    """Another process exchanges the file, and its folder, for links as fast as it can."""
    (folder / "good").mkdir()
    (folder / "good/name").write_text("inside")
    (folder.parent / "name").write_text("outside")
    (folder / "evil").symlink_to("..")
    over = threading.Event()

    def exchange():
        for _ in range(20000):
            if over.is_set():
                return
            os.rename(folder / "good", folder / "x")
            os.rename(folder / "evil", folder / "good")
            os.rename(folder / "x", folder / "evil")
            over.wait(0.0001)

    thread = threading.Thread(target=exchange)
    thread.start()
    files.tool("file_write", path="made", content="inside")
    for _ in range(60):
        if not files.tool("file_import", file="good/name", path="taken")["isError"]:
            assert text_of(files.tool("file_read", path="taken")).startswith("inside\n")
        files.tool("file_export", path="made", file="good/name", replace=True)
    over.set()
    thread.join()
    assert (folder.parent / "name").read_text() == "outside"


def test_what_a_client_adds_to_a_message_is_not_taken_for_a_file(files, folder):
    call = {"name": "file_import", "arguments": {"file": "../secret", "session": "mine", "path": "forged"}, "glovebox/content": "Zm9yZ2Vk"}
    assert files.request("tools/call", call)["result"]["isError"]
    assert files.tool("file_read", path="forged")["isError"]
    assert not files.tool("file_import", file="sales.csv", path="forged")["isError"], "the next call is served"

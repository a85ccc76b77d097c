"""Files of a session over HTTP: written, read, listed, moved, watched, sent as tars, by signed URLs."""

import base64
import contextlib
import http.client
import io
import json
import pathlib
import re
import socket
import tarfile
import time
import urllib.parse

import pytest
from session_rig import Events


@pytest.fixture
def files(daemon):
    session = daemon.session()
    yield Files(daemon, session)
    session.end()
    daemon.idle()


class Files:
    def __init__(self, daemon, session):
        self.daemon, self.session = daemon, session

    def raw(self, method, place, body=None, headers=()):
        connection = http.client.HTTPConnection("localhost", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(60)
        connection.sock.connect(self.daemon.path)
        with contextlib.suppress(BrokenPipeError):  # refused before the body was read
            connection.request(method, place, body, dict(headers))
        return connection.getresponse()

    def place(self, path):
        return f"{self.session.place}/files/{urllib.parse.quote(path)}"

    def put(self, path, body, query="", headers=()):
        response = self.raw("PUT", self.place(path) + query, body, headers)
        return response.status, response.read()

    def get(self, path, headers=()):
        response = self.raw("GET", self.place(path), None, headers)
        return response.status, response.read(), response.headers

    def delete(self, path):
        response = self.raw("DELETE", self.place(path))
        return response.status, response.read(), response.headers

    def ask(self, what, **request):
        return self.session.call("POST", f"/files:{what}", request)

    def paths(self, **request):
        status, answer = self.ask("list", **request)
        assert status == 200, answer
        return [entry["path"] for entry in answer["entries"]]


class TestFiles:
    def test_what_is_written_is_read_by_code_and_by_clients(self, files):
        status, body = files.put("in/data.csv", b"a,b\n1,2\n")
        assert status == 200, body
        assert files.session.value("open('in/data.csv').read()") == repr("a,b\n1,2\n")
        files.session.run("open('/tmp/out.bin', 'wb').write(bytes(range(256)))")
        status, body, headers = files.get("/tmp/out.bin")
        assert (status, body, headers["Content-Length"]) == (200, bytes(range(256)), "256")
        assert headers["Content-Disposition"] == "attachment" and "Last-Modified" in headers
        assert files.get("in/data.csv")[2]["Content-Type"].startswith("text/csv")

    def test_parts_of_a_file(self, files):
        assert files.put("f", bytes(range(100)))[0] == 200
        status, body, headers = files.get("f", {"Range": "bytes=10-19"})
        assert (status, body, headers["Content-Range"]) == (206, bytes(range(10, 20)), "bytes 10-19/100")
        assert files.get("f", {"Range": "bytes=-5"})[:2] == (206, bytes(range(95, 100)))
        status, body, headers = files.get("f", {"Range": "bytes=200-"})
        assert (status, headers["Content-Range"]) == (416, "bytes */100")
        head = files.raw("HEAD", files.place("f"))
        assert (head.status, head.headers["Content-Length"], head.read()) == (200, "100", b"")
        assert files.put("empty", b"")[0] == 200 and files.get("empty")[2]["Content-Length"] == "0"

    def test_a_mode_is_kept_or_given(self, files):
        assert files.put("run.sh", b"#!/bin/sh\n", "?mode=755")[0] == 200
        assert files.ask("stat", path="run.sh")[1]["mode"] == "755"
        assert files.put("run.sh", b"#!/bin/sh\necho 1\n")[0] == 200
        assert files.ask("stat", path="run.sh")[1]["mode"] == "755"
        assert files.put("run.sh", b"", "", {"If-None-Match": "*"})[0] == 409

    def test_folders_are_made_listed_moved_and_removed(self, files):
        assert files.ask("mkdir", path="a/b/c")[0] == 201
        assert files.ask("mkdir", path="a/b/c")[0] == 409
        for name in ("a/z", "a/b/y", "a/b/c/x"):
            assert files.put(name, b"1")[0] == 200
        assert files.paths(path="a") == ["b", "z"]
        assert files.paths(path="a", depth=3) == ["b", "b/c", "b/c/x", "b/y", "z"]
        status, moved = files.ask("move", **{"from": "a/b", "to": "new/place"})
        assert (status, moved["path"]) == (200, "new/place"), moved
        assert files.paths(depth=9) == ["a", "a/z", "new", "new/place", "new/place/c", "new/place/c/x", "new/place/y"]
        assert files.session.call("DELETE", "/files/new")[0] == 200
        assert files.session.call("DELETE", "/files/new")[0] == 404
        assert files.paths() == ["a"]

    def test_ten_thousand_entries(self, files):
        files.session.run("import os\nos.mkdir('many')\nfor i in range(10000): open(f'many/{i:05}', 'w').close()")
        status, answer = files.ask("list", path="many")
        assert status == 200 and len(answer["entries"]) == 10000 and not answer["truncated"]
        assert [entry["name"] for entry in answer["entries"]] == [f"{i:05}" for i in range(10000)]
        status, answer = files.ask("list", path="many", limit=10)
        assert len(answer["entries"]) == 10 and answer["truncated"]

    @pytest.mark.parametrize("path", ["../x", "a/../../x", "./x", "a//b", "", "a/./b", "x" * 4090])
    def test_what_is_no_path_is_refused(self, files, path):
        assert files.put(path, b"1")[0] in (400, 404)
        assert files.ask("list", path=".")[1]["entries"] == files.ask("list", path="")[1]["entries"]
        assert files.ask("stat", path="../etc")[0] == 400

    def test_the_folder_of_the_session_is_no_file(self, files):
        assert files.put("a", b"1")[0] == 200
        for status, body in (files.get(".")[:2], files.put(".", b"1"), files.delete(".")[:2]):
            assert status == 400 and b"the path is empty" in body, body
        for what, request in (("mkdir", {"path": "."}), ("move", {"from": "a", "to": "."}), ("move", {"from": ".", "to": "b"})):
            status, answer = files.ask(what, **request)
            assert status == 400 and "the path is empty" in answer["error"]["message"], answer
        assert files.get("a")[1] == b"1"

    def test_what_is_no_question(self, files):
        for what, body, says in (("stat", b"null", b"JSON object"), ("list", b"[]", b"JSON object"),
                                 ("mkdir", b"{}", b"'path'"), ("move", b"{}", b"'from'")):
            response = files.raw("POST", f"{files.session.place}/files:{what}", body)
            assert response.status == 400 and says in response.read(), what

    @pytest.mark.parametrize("path", ["/proc/self/environ", "/proc/1/maps", "/etc/x", "/x"])
    def test_what_is_not_the_sessions_is_not_served(self, files, path):
        assert files.put(path, b"1")[0] in (403, 404)
        assert files.get(path)[0] in (403, 404)

    @pytest.mark.parametrize("name", [b"new\nline", b"\xff\xfe\n", "\u00fc \u2028".encode(), b"%41", b"a?b#c", b'q"\\'])
    def test_any_bytes_are_a_name(self, files, name):
        place = f"{files.session.place}/files/{urllib.parse.quote_from_bytes(name)}"
        response = files.raw("PUT", place, b"content")
        assert response.status == 200, response.read()
        entry, = files.ask("list")[1]["entries"]
        told = base64.b64decode(entry["path_base64"]) if "path_base64" in entry else entry["path"].encode()
        assert told == name
        assert files.ask("stat", path_base64=base64.b64encode(name).decode())[1]["bytes"] == 7
        assert files.raw("GET", place).read() == b"content"
        assert files.raw("DELETE", place).status == 200

    def test_links_never_lead_out(self, files):
        files.session.run("import os\nos.symlink('/etc/passwd', 'l')\nos.symlink('/proc/self/root/../../x', 'm')")
        status, body, _ = files.get("l")
        assert status == 200 and body == files.session.run("print(open('/etc/passwd').read(), end='')")["stdout"].encode()
        assert files.get("m")[0] in (400, 403, 404)
        entry = files.ask("stat", path="l")[1]
        assert (entry["type"], entry["target"], entry["target_type"]) == ("link", "/etc/passwd", "file")

    def test_no_walk_enters_proc(self, files):
        """A walk from the root sees that there is a /proc, and nothing of what is in it: it would see as init does."""
        files.session.run("import os\nos.makedirs('/workspace/d')\nopen('/workspace/d/f', 'w')")
        paths = set(files.paths(path="/", depth=6))
        assert {"proc", "workspace/d/f"} <= paths
        assert not [path for path in paths if path.startswith("proc/")]
        response = files.raw("GET", f"{files.session.place}/files:tar?path=/etc/..")
        assert response.status == 400, response.read()
        response = files.raw("GET", f"{files.session.place}/files:tar?path=/")
        names = tarfile.open(fileobj=io.BytesIO(response.read()), errorlevel=0).getnames()
        assert "workspace/d/f" in names and not [name for name in names if name.startswith("proc/")]
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("proc/self/oom_score_adj"), io.BytesIO())
        response = files.raw("PUT", f"{files.session.place}/files:tar?path=/", made.getvalue())
        assert response.status == 403, response.read()

    @pytest.mark.parametrize("target", ["/proc/self/fd/0", "/proc/1/exe", "/proc/self/status", "/proc/self/root/etc/passwd"])
    def test_the_target_of_a_link_into_proc_is_not_revealed(self, files, target):
        files.session.run(f"import os\nos.symlink({target!r}, 'l')")
        entry, = files.ask("list")[1]["entries"]
        assert (entry["type"], entry["target"]) == ("link", target) and not entry.get("target_type")

    def test_a_time_that_does_not_fit_is_the_last_that_does(self, files):
        files.session.run("import os\nfor name, t in ('past', -(1 << 40)), ('far', 1 << 40):\n"
                          "  open(name, 'w')\n  os.utime(name, (t, t))")
        times = {entry["path"]: entry["modified_at"] for entry in files.ask("list")[1]["entries"]}
        assert times == {"past": "1677-09-21T00:12:43.146Z", "far": "2262-04-11T23:47:16.854Z"}

    def test_a_socket_is_no_file(self, files):
        files.session.run("import socket\ns = socket.socket(socket.AF_UNIX)\ns.bind('s')")
        status, body, _ = files.get("s")
        assert status == 400 and b"no regular file" in body

    def test_a_tree_of_any_depth_is_removed(self, files):
        files.session.run("import os\nos.mkdir('t')\nos.chdir('t')\nfor i in range(1000):\n"
                          "  os.mkdir('d'); open('f', 'w'); os.chdir('d')\nos.chdir('/workspace')")
        status, body, _ = files.delete("t")
        assert status in (200, 204), body
        assert files.paths() == []

    def test_a_full_disk_is_named(self, daemon):
        session = daemon.session(limits={"disk_bytes": 4 << 20})
        small = Files(daemon, session)
        assert small.put("f", b"old")[0] == 200
        status, body = small.put("f", bytes(8 << 20))
        assert status == 507 and b'"full"' in body
        assert small.get("f")[1] == b"old" and small.paths() == ["f"]
        session.end()

    def test_an_upload_that_breaks_off_leaves_what_was_there(self, files):
        assert files.put("f", b"old")[0] == 200
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(files.daemon.path)
        sock.sendall(f"PUT {files.place('f')} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n".encode() +
                     b"new" * 10000)
        while len(files.ask("list")[1]["entries"]) < 2:
            time.sleep(0.01)
        sock.close()
        while len(files.ask("list")[1]["entries"]) > 1:
            time.sleep(0.01)
        assert files.get("f")[1] == b"old"

    def test_what_streams_through_takes_no_memory(self, daemon):
        session = daemon.session(limits={"disk_bytes": 300 << 20, "memory_bytes": 1 << 30})
        big = Files(daemon, session)
        status = pathlib.Path(f"/proc/{daemon.daemon_pid()}/status")

        def peak():
            return int(re.search(r"VmHWM:\s+(\d+)", status.read_text()).group(1))

        before = peak()
        content = b"0123456789abcdef" * 65536 * 128
        assert big.put("big", content)[0] == 200
        response = big.raw("GET", big.place("big"))
        time.sleep(0.2)  # a slow reader costs a window, not the file
        assert response.read() == content
        assert peak() - before < 16 * 1024
        session.end()

    def test_a_session_that_is_gone_is_not_there(self, daemon):
        session = daemon.session()
        session.end()
        gone = Files(daemon, session)
        assert gone.get("f")[0] == 409 and gone.put("f", b"1")[0] == 409
        assert gone.raw("GET", "/v1/sessions/ses_none/files/f").status == 404


class TestTars:
    def test_a_folder_as_a_tar(self, files):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name, content in (("a.txt", b"1"), ("d/b.bin", bytes(100000))):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            fifo = tarfile.TarInfo("fifo")
            fifo.type = tarfile.FIFOTYPE
            tar.addfile(fifo)
        response = files.raw("PUT", f"{files.session.place}/files:tar?path=in", out.getvalue())
        assert response.status == 200 and b'"skipped":["fifo"]' in response.read()
        assert files.paths(path="in", depth=3) == ["a.txt", "d", "d/b.bin"]
        response = files.raw("GET", f"{files.session.place}/files:tar?path=in")
        with tarfile.open(fileobj=io.BytesIO(response.read())) as tar:
            assert sorted(tar.getnames()) == ["a.txt", "d", "d/b.bin"]
            assert tar.extractfile("d/b.bin").read() == bytes(100000)

    def test_a_tar_that_leads_out_is_refused(self, files):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("../x"))
        response = files.raw("PUT", f"{files.session.place}/files:tar", out.getvalue())
        assert response.status == 400 and b"../x" in response.read()
        assert files.raw("PUT", f"{files.session.place}/files:tar", b"x" * 1024).status == 400
        assert files.raw("GET", f"{files.session.place}/files:tar?path=none").status == 404


def last_event(response):
    """The body must have its last chunk: http.client tells otherwise."""
    kind, data = response.read().decode().replace(": nothing new\n\n", "").strip().split("\n\n")[-1].split("\n")
    return kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))


class TestWatch:
    def test_changes_are_events(self, files):
        events = Events(files.raw("GET", f"{files.session.place}/files:watch?recursive=1"))
        assert events.response.status == 200
        seen = []

        def wait_for(*change):
            while change not in seen:
                name, data = events.next()
                seen.append((name, data["path"]))

        files.session.run("import os\nos.makedirs('a/b')")
        wait_for("create", "a/b")
        files.session.run("open('a/b/c', 'w').write('1')\nos.rename('a/b/c', 'd')\nos.remove('d')")
        wait_for("remove", "d")
        assert {("create", "a"), ("create", "a/b"), ("create", "a/b/c"), ("rename", "a/b/c"), ("create", "d")} <= set(seen)
        events.hang_up()

    def test_an_overflow_of_unread_changes_is_reported(self, files):
        """A folder that is moved in tells all that is below it at once."""
        files.session.run("import os\nos.makedirs('seen')\nfor f in range(4):\n  os.makedirs(f's/{f}')\n"
                          "  for i in range(2000): open(f's/{f}/' + 'n' * 200 + str(i), 'w')")
        events = Events(files.raw("GET", f"{files.session.place}/files:watch?recursive=1&path=seen"))
        files.session.run("import os, time\nos.rename('s', 'seen/s')\ntime.sleep(2)")
        told = 0
        while events.next()[0] != "lost":
            told += 1
        assert told < 8000
        files.session.run("import shutil\nshutil.rmtree('seen')")
        events.hang_up()

    @pytest.mark.parametrize("end", ["import shutil; shutil.rmtree('out/gone')", "import os; os.rename('out/gone', 'away')",
                                     "import shutil; shutil.rmtree('out')"])
    def test_a_watch_ends_with_its_folder(self, files, end):
        files.session.run("import os\nos.makedirs('out/gone/in', exist_ok=True)")
        for recursive in (0, 1):
            response = files.raw("GET", f"{files.session.place}/files:watch?recursive={recursive}&path=out/gone")
            files.session.run("import os\nos.makedirs('out/other')\nos.rmdir('out/other')")  # beside it
            files.session.run(end)
            name, data = last_event(response)
            assert name == "error" and data["error"]["code"] == "not_found", data
            assert "the watched folder is gone" in data["error"]["message"]
            files.session.run("import os, shutil\nshutil.rmtree('away', True)\nos.makedirs('out/gone/in', exist_ok=True)")
        files.session.run("import shutil\nshutil.rmtree('out')")

    def test_a_watch_ends_with_its_session(self, files):
        status, answer = files.session.daemon.call("POST", "/v1/sessions", {"policy": "minimal"})
        assert status == 201, answer
        response = files.raw("GET", f"/v1/sessions/{answer['id']}/files:watch")
        assert response.status == 200
        assert files.session.daemon.call("DELETE", f"/v1/sessions/{answer['id']}")[0] in (200, 204)
        name, data = last_event(response)
        assert name == "error" and "the session has ended" in data["error"]["message"]

    def test_what_is_no_folder_is_not_watched(self, files):
        assert files.raw("GET", f"{files.session.place}/files:watch?path=none").status == 404


class TestSignedUrls:
    def test_one_path_one_method(self, files):
        assert files.put("a b/\u00fc", b"1")[0] == 200
        status, answer = files.ask("sign", path="a b/\u00fc")
        assert status == 200
        url = answer["url"]
        assert files.raw("GET", url).read() == b"1"
        assert files.raw("PUT", url, b"2").status == 401
        assert files.raw("GET", url.replace("%C3%BC", "x")).status == 401
        assert files.raw("GET", re.sub(r"expires=\d+", "expires=9999999999", url)).status == 401
        assert files.raw("GET", url[:-2]).status == 401
        put = files.ask("sign", path="up", method="PUT")[1]["url"]
        assert files.raw("PUT", put, b"new").status == 200 and files.get("up")[1] == b"new"
        assert files.raw("GET", put).status == 401

    def test_it_expires(self, files):
        url = files.ask("sign", path="up", method="PUT", expires_seconds=1)[1]["url"]
        while time.time() < int(re.search(r"expires=(\d+)", url).group(1)):
            time.sleep(0.05)
        assert files.raw("PUT", url, b"new").status == 401


@pytest.mark.parametrize("size", [300, 600])
def test_a_file_that_does_not_fit_is_reported_at_any_size(files, size):
    """Also to a client that reads nothing before it has sent all of it; before, it heard a broken connection."""
    peer = files.daemon.connect()
    peer.sendall(f"PUT {files.session.place}/files/large HTTP/1.1\r\nHost: localhost\r\n"
                 f"Content-Length: {size << 20}\r\n\r\n".encode())
    piece = bytes(1 << 20)
    for _ in range(size):
        peer.sendall(piece)
    said = b""
    while got := peer.recv(1 << 16):
        said += got
    head, body = said.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 507 ") and b"\r\nX-Content-Type-Options: nosniff" in head, said[:300]
    assert said.count(b"HTTP/1.1") == 1 and json.loads(body)["error"]["code"], said

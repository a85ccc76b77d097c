"""What the CLI makes of answers: bytes, messages, exit statuses, files. The daemon is a fake, so that
answers can be had that an honest one never gives."""

import base64
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import time

import pytest

from fake_daemon import FakeDaemon, chunk, event, plain, stream


@pytest.fixture
def served(glovebox, tmp_path):
    """Runs the CLI against scripted answers."""
    daemons = []

    def serve(script, *arguments, **how):
        socket = tmp_path / f"s{len(daemons)}"
        script = script if isinstance(script, dict) else {"POST /v1/runs": script}
        daemons.append(FakeDaemon(socket, script))
        done = glovebox("run", "--daemon", socket, *(arguments or ("-c", "1")), **how)
        done.requests = daemons[-1].requests
        return done

    yield serve
    for daemon in daemons:
        daemon.close()


def test_output_passes_byte_exact_when_piped(served):
    raw = bytes(range(256)) + b"\x1b]0;title\x07\x1b[2J"
    done = served(stream(("stdout", {"data": "a\x1b[31mb\n"}),
                         ("stdout", {"data_base64": base64.b64encode(raw).decode()}),
                         ("stderr", {"data": "grüße\n"})))
    assert done.stdout == b"a\x1b[31mb\n" + raw
    assert done.stderr == "grüße\n".encode()
    assert done.returncode == 0


@pytest.mark.parametrize("result, status", [
    ({"status": "ok", "exit_code": 0}, 0),
    ({"status": "error", "exit_code": 3}, 3),
    ({"status": "error", "exit_code": None, "signal": 11}, 139),
    ({"status": "limit", "exit_code": None, "signal": 9, "limit": {"name": "wall", "message": "m"}}, 124),
    ({"status": "limit", "exit_code": None, "signal": 9, "limit": {"name": "cpu", "message": "m"}}, 124),
    ({"status": "limit", "exit_code": None, "signal": 9, "limit": {"name": "memory", "message": "m"}}, 137),
    ({"status": "limit", "exit_code": 1, "limit": {"name": "disk", "message": "m"}}, 1),
    ({"status": "denied", "exit_code": None}, 126),
    ({"status": "lost", "exit_code": None}, 125),
    ({"status": "cancelled", "exit_code": None}, 130),
    ({"status": "of a later version", "exit_code": None}, 125),
])
def test_exit_status(served, result, status):
    assert served(stream(**result)).returncode == status


@pytest.mark.parametrize("code, status", [
    ("limit", 126), ("policy", 126), ("not_found", 125), ("bad_request", 125), ("busy", 125),
    ("internal", 125), ("a later one", 125),
])
def test_refusal_is_one_line(served, code, status):
    body = json.dumps({"error": {"code": code, "message": "cause; fix", "fault": "caller"}}).encode()
    done = served(plain(422, body))
    assert done.returncode == status
    assert done.stderr == b"glovebox: cause; fix\n" and done.stdout == b""
    assert json.loads(served(plain(422, body), "--json", "-c", "1").stdout)["error"]["message"] == "cause; fix"


def test_json_is_the_contract_and_nothing_else(served):
    done = served(stream(("stdout", {"data": "x"}), stdout="x", exit_code=4, status="error"),
                  "--json", "-c", "1")
    assert json.loads(done.stdout)["exit_code"] == 4 and done.stdout.count(b"\n") == 1
    assert done.returncode == 4


def test_limit_and_denials_are_printed_in_a_line_each(served):
    done = served(stream(status="limit", exit_code=None, signal=9,
                         limit={"name": "wall", "message": "execution exceeded 1 s; ask for more"},
                         denials=[{"layer": "network", "target": "1.2.3.4:80", "count": 2,
                                   "message": "policy data has no network"},
                                  {"layer": "syscall", "target": "ptrace", "count": 1, "message": "no"}]))
    lines = done.stderr.decode().splitlines()
    assert lines == ["glovebox: execution exceeded 1 s; ask for more",
                     "glovebox: refused: network 1.2.3.4:80: policy data has no network "
                     "(and 1 more; --json lists them)"]


def test_messages_cannot_forge_lines_or_escape_sequences(served):
    done = served(stream(denials=[{"layer": "x", "target": "a\nglovebox: all is well\x1b[2J\u009b1m é",
                                   "count": 1, "message": "m"}]))
    assert done.stderr.count(b"\n") == 1 and b"\x1b" not in done.stderr
    # Alone, the second byte is CSI to a terminal of 8 bits.
    assert rb"\xc2\x9b1m " in done.stderr and "1m é".encode() in done.stderr and b"\x9b" not in done.stderr


def at_terminal(glovebox, socket, code="1"):
    """What a terminal receives."""
    master, slave = pty.openpty()
    process = subprocess.Popen([glovebox.program, "run", "--daemon", str(socket), "-c", code],
                               stdin=slave, stdout=slave, stderr=slave, env=glovebox.environment())
    os.close(slave)
    seen = b""
    while True:
        try:
            data = os.read(master, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(master)
    return seen.replace(b"\r\n", b"\n"), process.wait()


def test_terminal_gets_colours_but_no_other_control(glovebox, tmp_path):
    parts = ["\x1b[1;31mred\x1b[0m", "\ttab\n", "\x1b]0;title\x07", "\x1b[2J", "\x1b]52;c;AAAA\x1b\\",
             "\x9b5n", "\x08\x7f\x00", "ok é 漢\n", "\x1b", "[32mgreen", "\x1b["]
    daemon = FakeDaemon(tmp_path / "s", {"POST /v1/runs": stream(
        *[("stdout", {"data": part}) for part in parts],
        ("stdout", {"data_base64": base64.b64encode(b"\x9b\xff").decode()}))})
    seen, status = at_terminal(glovebox, tmp_path / "s")
    daemon.close()
    assert status == 0
    assert seen == ("\x1b[1;31mred\x1b[0m\ttab\n^[]0;title^G^[[2J^[]52;c;AAAA^[\\\ufffd5n^H^?^@"
                    "ok é 漢\n\x1b[32mgreen^[[\ufffd\ufffd\x1b[0m").encode()


HASH = "sha256:" + "ab" * 32


def with_artifacts(*paths, content=b"made"):
    artifacts = [{"path": path, "bytes": len(content), "sha256": "ab" * 32, "mime": "text/plain",
                  "url": f"/v1/artifacts/{HASH}"} for path in paths]
    return {"POST /v1/runs": stream(artifacts=artifacts),
            f"GET /v1/artifacts/{HASH}": plain(200, content, "text/plain")}


def test_artifacts_are_written_beneath_the_folder(served, tmp_path):
    done = served(with_artifacts("plot.png", "a/b/table.csv", "naïve ünïcode.txt"),
                  "--out", "made/here", "-c", "1")
    assert done.returncode == 0 and done.stderr == b""
    out = tmp_path / "made" / "here"
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()) == \
        ["a/b/table.csv", "naïve ünïcode.txt", "plot.png"]
    assert (out / "plot.png").read_bytes() == b"made"


@pytest.mark.parametrize("path", ["../outside", "/etc/x", "a/../../outside", "", ".", "..", "a//b", "x/",
                                  "link/outside", "y" * 300])
def test_hostile_names_of_artifacts_write_nothing(served, tmp_path, path):
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "link").symlink_to(tmp_path / "elsewhere")
    done = served(with_artifacts(path, "good.txt"), "--out", "out", "-c", "1")
    assert done.returncode == 125 and done.stderr.startswith(b"glovebox: cannot save")
    assert sorted(os.listdir(tmp_path / "elsewhere")) == []
    assert not (tmp_path / "outside").exists()
    assert (tmp_path / "out" / "good.txt").read_bytes() == b"made", "one that fails stops no other"


def test_a_link_that_lies_there_is_replaced_not_followed(served, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "out" / "plot.png").symlink_to(tmp_path / "precious")
    assert served(with_artifacts("plot.png"), "--out", "out", "-c", "1").returncode == 0
    assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "out" / "plot.png").read_bytes() == b"made"
    assert not (tmp_path / "out" / "plot.png").is_symlink()


def test_a_full_disk_is_reported_and_no_partial_file_is_left(served, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=False).returncode:
        pytest.skip("cannot mount here")
    try:
        done = served(with_artifacts("big.bin", content=b"x" * 300000), "--out", "small", "-c", "1")
        assert done.returncode == 125
        assert b"cannot save 'big.bin'" in done.stderr and b"No space left" in done.stderr
        assert os.listdir(small) == []
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.parametrize("answer", [
    b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2x\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70000,
    plain(200, b"{}"), plain(200, b"not json"), plain(500, b"<html>"),
    stream()[:-40], b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n",
])
def test_a_daemon_that_misbehaves_is_a_failure_in_one_line(served, answer):
    def reply(connection, _):
        connection.sendall(answer)

    done = served(reply)
    assert done.returncode == 125
    assert done.stderr.startswith(b"glovebox: ") and done.stderr.count(b"\n") == 1


def test_no_daemon_at_the_socket(glovebox, tmp_path):
    done = glovebox("run", "--daemon", tmp_path / "none", "-c", "1")
    assert done.returncode == 125
    assert done.stderr.endswith(b"(No such file or directory); start it: glovebox serve\n")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_no_daemon_at_the_port(glovebox, host):
    if host == "[::1]" and not os.path.isdir("/proc/sys/net/ipv6/conf/lo"):
        pytest.skip("no IPv6 here")
    done = glovebox("run", "--daemon", f"{host}:9", "-c", "1")
    assert done.returncode == 125
    assert done.stderr.decode().endswith(f"(Connection refused); start it: glovebox serve --listen {host}:9\n")


def test_events_that_arrive_byte_by_byte(served):
    answer = stream(("stdout", {"data": "hello\n"}))

    def reply(connection, _):
        for byte in answer:
            connection.sendall(bytes([byte]))

    done = served(reply)
    assert done.stdout == b"hello\n" and done.returncode == 0


def test_ctrl_c_cancels_and_keeps_what_came(glovebox, tmp_path):
    cancelled = []

    def run(connection, _):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head + chunk(event("started", {"id": "run_7"})) +
                           chunk(event("stdout", {"data": "part\n"})))
        while not cancelled:
            time.sleep(0.01)
        from fake_daemon import RESULT
        connection.sendall(chunk(event("end", RESULT | {"status": "cancelled", "exit_code": None})) +
                           b"0\r\n\r\n")

    def cancel(connection, _):
        cancelled.append(True)
        connection.sendall(plain(200, b"{}"))

    daemon = FakeDaemon(tmp_path / "s", {"POST /v1/runs": run, "DELETE /v1/runs/run_7": cancel})
    process = glovebox.start("run", "--daemon", tmp_path / "s", "-c", "1", stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"part\n"
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=10)
    daemon.close()
    assert process.returncode == 130 and stderr == b"glovebox: cancelled\n" and cancelled


def test_a_reader_that_goes_away_ends_the_run(glovebox, tmp_path):
    cancelled = []

    def run(connection, _):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head + chunk(event("started", {"id": "run_7"})))
        while not cancelled:
            connection.sendall(chunk(event("stdout", {"data": "y\n" * 1000})))
            time.sleep(0.01)
        from fake_daemon import RESULT
        connection.sendall(chunk(event("end", RESULT | {"status": "cancelled"})) + b"0\r\n\r\n")

    def cancel(connection, _):
        cancelled.append(True)
        connection.sendall(plain(200, b"{}"))

    daemon = FakeDaemon(tmp_path / "s", {"POST /v1/runs": run, "DELETE /v1/runs/run_7": cancel})
    process = glovebox.start("run", "--daemon", tmp_path / "s", "-c", "1", stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=10) == 141
    process.stderr.close()
    daemon.close()


def request_of(done):
    return json.loads(done.requests[0][2])


def test_the_request_says_what_the_command_line_says(served, tmp_path):
    (tmp_path / "data.csv").write_bytes(b"a,b\n\xff\x00")
    (tmp_path / "script.py").write_text("print('ä')\n")
    done = served(stream(), "--policy", "minimal", "--wall", "1s", "--memory", "64MiB", "--cpus", "0.5",
                  "--file", "data.csv", "--file", "data.csv:/workspace/in/x.csv:ro", "--env", "K=V=W",
                  "--stdin", "script.py", "--wall", "x", stdin=b"in\x00put")
    assert done.returncode == 0
    request = request_of(done)
    content = base64.b64encode(b"a,b\n\xff\x00").decode()
    assert request == {
        "code": "print('ä')\n", "language": "python", "filename": "script.py", "args": ["--wall", "x"],
        "policy": "minimal", "limits": {"wall_ms": 1000, "memory_bytes": 64 << 20, "cpus": 0.5},
        "env": {"K": "V=W"}, "stdin_base64": base64.b64encode(b"in\x00put").decode(),
        "files": [{"path": "data.csv", "content_base64": content},
                  {"path": "in/x.csv", "content_base64": content, "read_only": True}],
    }


def test_names_with_colons_are_names(served, tmp_path):
    (tmp_path / "a:b.csv").write_text("1")
    (tmp_path / "c:ro").write_text("2")
    done = served(stream(), "--file", "a:b.csv", "--file", "c:ro", "--file", "a:b.csv:z", "-c", "1")
    files = request_of(done)["files"]
    assert [file["path"] for file in files] == ["a:b.csv", "c:ro", "z"]
    assert not any("read_only" in file for file in files)


@pytest.mark.parametrize("name, text, language", [
    ("a.py", "x", "python"), ("a.sh", "x", "bash"), ("a", "#!/usr/bin/env python3\nx", "python"),
    ("a", "#!/bin/bash -e\nx", "bash"), ("a", "#!/usr/bin/env -S python3 -I\nx", "python"),
    ("a", "x", None), ("a.c", "x", "c"),
])
def test_language_by_name_or_first_line(served, tmp_path, name, text, language):
    (tmp_path / name).write_text(text)
    assert request_of(served(stream(), name)).get("language") == language


def test_exec_sends_a_command(glovebox, tmp_path):
    daemon = FakeDaemon(tmp_path / "s", {"POST /v1/runs": stream()})
    done = glovebox("exec", "--daemon", tmp_path / "s", "--", "ls", "-l", "--", "")
    assert done.returncode == 0
    request = json.loads(daemon.requests[0][2])
    assert request["command"] == ["ls", "-l", "--", ""] and "code" not in request
    daemon.close()


def test_top_cuts_what_a_terminal_has_no_room_for(glovebox, tmp_path):
    daemon = FakeDaemon(tmp_path / "s", {"GET /v1/status": plain(200, json.dumps({"version": "9" * 18 + "é" * 30}).encode())})
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 48, 0, 0))
    process = glovebox.start("top", "--daemon", tmp_path / "s", stdin=slave, stdout=slave, stderr=slave)
    seen = b""
    while b"KEY " not in seen:
        seen += os.read(master, 4096)
    os.write(master, b"q")
    assert process.wait(30) == 0
    lines = seen.decode().replace("\x1b[H", "").replace("\x1b[2J", "").splitlines()
    assert lines[0] == "glovebox " + "9" * 18 + "é" * 10 and max(len(line.encode()) for line in lines) <= 48, lines
    os.close(master)
    os.close(slave)
    daemon.close()


@pytest.mark.parametrize("typed, status", [(b"q", 0), (b"\x03", 130)])
def test_top_is_left_by_one_key_and_gives_the_terminal_back(glovebox, tmp_path, typed, status):
    daemon = FakeDaemon(tmp_path / "s", {"GET /v1/status": plain(200, b'{"version": "9"}')})
    master, slave = pty.openpty()
    keys = termios.ICANON | termios.ECHO
    process = glovebox.start("top", "--daemon", tmp_path / "s", stdin=slave, stdout=slave, stderr=slave,
                             preexec_fn=lambda: (os.setsid(), fcntl.ioctl(slave, termios.TIOCSCTTY, 0)))
    seen = b""
    while b"glovebox" not in seen:
        seen += os.read(master, 4096)
    os.write(master, typed)
    assert process.wait(30) == status, seen
    assert termios.tcgetattr(slave)[3] & keys == keys and not seen.endswith((b"q", b"^C"))
    os.close(master)
    os.close(slave)
    daemon.close()

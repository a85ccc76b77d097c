"""Servers that listen inside a session, reached through gloveboxd: HTTP, an upgrade, raw bytes."""

import http.client
import json
import os
import socket
import time

import pytest

from serving import Serving, remove_state, state_of_its_own

SERVER = r'''
import hashlib, http.server, json, socket, threading

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = self.headers.get("Content-Length")
        body = self.rfile.read(int(length)) if length else b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size); self.rfile.readline()
            self.rfile.readline()
        if self.path.startswith("/chunks"):
            self.send_response(201); self.send_header("Transfer-Encoding", "chunked"); self.send_header("X-Mine", "1"); self.end_headers()
            for piece in (b"one ", b"two ", b"x" * 100000):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n"); return
        if self.path.startswith("/switch"):
            self.send_response(101); self.send_header("Upgrade", "echo"); self.send_header("Connection", "Upgrade"); self.end_headers()
            while data := self.connection.recv(1000): self.wfile.write(data[::-1])
            self.close_connection = True; return
        if self.path.startswith("/rude"):
            self.wfile.write(b"nonsense\r\n\r\n"); self.close_connection = True; return
        told = json.dumps({"method": self.command, "path": self.path, "headers": dict(self.headers), "size": len(body),
                           "sha": hashlib.sha256(body).hexdigest()}).encode()
        self.send_response(200); self.send_header("Content-Type", "application/json"); self.send_header("Content-Length", str(len(told)))
        self.send_header("Set-Cookie", "a=b"); self.send_header("Content-Security-Policy", "none"); self.end_headers()
        self.wfile.write(told)

    do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer
    def log_message(self, *a): pass

threading.Thread(target=http.server.ThreadingHTTPServer(("127.0.0.1", 8080), Handler).serve_forever).start()
raw = socket.create_server(("127.0.0.1", 9090))
print("up", flush=True)
while True:
    c, _ = raw.accept()
    while data := c.recv(65536): c.sendall(data.upper())
    c.close()
'''


@pytest.fixture(scope="module")
def session(daemon):
    made = daemon.session(policy="server")
    status, process = made.call("POST", "/processes", {"command": ["python3", "-c", SERVER]})
    assert status == 201, process
    while made.call("GET", f"/processes/{process['id']}")[1]["end_offset"] == 0:
        time.sleep(0.02)
    yield made
    made.end()


def call(session, method, place, body=None, headers=(), chunked=False):
    connection = http.client.HTTPConnection("localhost", timeout=30)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(30)
    connection.sock.connect(session.daemon.path)
    connection.request(method, f"{session.place}/ports/{place}", body, dict(headers), encode_chunked=chunked)
    return connection.getresponse()


def test_a_request_reaches_the_server_without_what_is_gloveboxs(session):
    response = call(session, "POST", "8080/a%20b/c?x=1&y=a%26b", b"body", {
        "Cookie": "secret", "X-Other": "kept", "Content-Type": "text/plain", "Connection": "keep-alive"})
    told = json.loads(response.read())
    assert (response.status, told["method"], told["path"], told["size"]) == (200, "POST", "/a%20b/c?x=1&y=a%26b", 4)
    headers = {name.lower(): value for name, value in told["headers"].items()}
    assert headers["host"] == "localhost:8080" and headers["x-other"] == "kept" and headers["content-type"] == "text/plain"
    assert not {"cookie", "authorization", "x-api-key", "origin", "x-glovebox-port-token"} & set(headers)
    assert "Set-Cookie" not in response.headers and "sandbox" in response.headers["Content-Security-Policy"]
    assert response.headers["Content-Type"] == "application/json"


def test_bodies_of_any_length_go_both_ways(session):
    content = bytes(range(256)) * 4096
    import hashlib  # pylint: disable=import-outside-toplevel
    told = json.loads(call(session, "PUT", "8080/up", content).read())
    assert (told["size"], told["sha"]) == (len(content), hashlib.sha256(content).hexdigest())
    told = json.loads(call(session, "POST", "8080/up", iter([content, b"x"]), {"Transfer-Encoding": "chunked"}, True).read())
    assert (told["size"], told["sha"]) == (len(content) + 1, hashlib.sha256(content + b"x").hexdigest())
    response = call(session, "GET", "8080/chunks")
    assert (response.status, response.headers["X-Mine"], response.read()) == (201, "1", b"one two " + b"x" * 100000)


def test_an_upgrade_goes_through(session):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(30)
    sock.connect(session.daemon.path)
    sock.sendall(f"GET {session.place}/ports/8080/switch HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += sock.recv(1)
    assert head.startswith(b"HTTP/1.1 101") and b"Upgrade: echo" in head
    sock.sendall(b"hello")
    assert sock.recv(100) == b"olleh"
    sock.shutdown(socket.SHUT_WR)
    assert sock.recv(100) == b""


def test_raw_bytes(session):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(30)
    sock.connect(session.daemon.path)
    sock.sendall(f"GET {session.place}/ports/9090/ HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += sock.recv(1)
    assert head.startswith(b"HTTP/1.1 101")
    sock.sendall(b"abc" * 100000)
    sock.shutdown(socket.SHUT_WR)
    got = b""
    while data := sock.recv(65536):
        got += data
    assert got == b"ABC" * 100000


def processor_time(pid):
    fields = open(f"/proc/{pid}/stat", encoding="ascii").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_half_closed_connection_costs_no_processor_time(session):
    """The server answers nothing and keeps the connection: half of it is closed, and nothing is to be done."""
    made = "import socket, time; s = socket.create_server(('127.0.0.1', 9191)); print('up', flush=True); c = s.accept()[0]; time.sleep(600)"
    _, process = session.call("POST", "/processes", {"command": ["python3", "-c", made]})
    while session.call("GET", f"/processes/{process['id']}")[1]["end_offset"] == 0:
        time.sleep(0.02)
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(session.daemon.path)
    sock.sendall(f"GET {session.place}/ports/9191/ HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n".encode())
    assert sock.recv(12) == b"HTTP/1.1 101"
    sock.shutdown(socket.SHUT_WR)
    time.sleep(0.2)
    before = processor_time(session.daemon.daemon_pid())
    time.sleep(1.5)
    assert processor_time(session.daemon.daemon_pid()) - before < 0.3, "the daemon turns in circles"
    sock.close()
    session.call("POST", f"/processes/{process['id']}/signal", {"signal": "KILL"})


def test_a_port_without_listener_is_reported(session):
    assert call(session, "GET", "8081/").status == 502
    assert call(session, "GET", "8080/rude").status == 502
    assert call(session, "GET", "0/").status == 400 and call(session, "GET", "99999/").status == 400


def test_without_loopback_there_is_no_port(daemon):
    session = daemon.session()
    response = call(session, "GET", "8080/")
    assert response.status == 403 and "network: loopback" in json.loads(response.read())["error"]["message"]
    session.end()


def test_a_token_opens_the_ports_of_one_session(session):
    status, answer = session.call("GET", "/ports:token")
    assert status == 200 and answer["header"] == "X-Glovebox-Port-Token" and len(answer["token"]) >= 64


def test_the_token_is_all_that_a_browser_needs(glovebox):
    """By TCP, where every request needs a key: with the token alone a server is reached, of this session, and nothing else."""
    state_of_its_own(glovebox)
    try:
        with Serving(glovebox) as serving:
            key = serving.key("--scope", "run,sessions")
            made = []
            while len(made) < 2:  # on a busy machine the first zygote may not be warm in time
                answer = serving.call("POST", "/v1/sessions", {"policy": "server"}, key=key)
                assert answer.status == 201 or answer.json["error"]["code"] in ("timeout", "busy"), answer.json
                made += [answer.json["id"]] if answer.status == 201 else []
            place = f"/v1/sessions/{made[0]}"
            process = serving.call("POST", f"{place}/processes", {"command": ["python3", "-c", SERVER]}, key=key).json
            while serving.call("GET", f"{place}/processes/{process['id']}", key=key).json["end_offset"] == 0:
                time.sleep(0.02)
            told = serving.call("GET", f"{place}/ports:token", key=key).json
            token = {told["header"]: told["token"]}
            reached = serving.call("GET", f"{place}/ports/8080/hello", headers=token, tcp=True)
            assert reached.status == 200 and reached.json["path"] == "/hello"
            assert told["header"] not in reached.json["headers"]
            for path, headers in ((f"{place}/ports/8080/", {}), (f"{place}/ports/8080/", {told["header"]: "0" * len(told["token"])}),
                                  (place, token), (f"{place}/files/x", token), ("/v1/sessions", token),
                                  (f"/v1/sessions/{made[1]}/ports/8080/", token)):
                assert serving.call("GET", path, headers=headers, tcp=True).status in (401, 403), (path, headers)
            serving.call("DELETE", place, key=key)
            assert serving.call("GET", f"{place}/ports/8080/", headers=token, tcp=True).status != 200
    finally:
        remove_state(glovebox)

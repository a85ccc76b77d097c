"""internet.py - servers of the tests in a namespace of theirs: DNS, the web, an echo that speaks first."""

import contextlib
import http.server
import socket
import struct
import subprocess
import threading

from egress_rig import GATE, PUBLIC
from web_server import WebServer

NAMES = {"api.example.org": PUBLIC, "files.example.org": PUBLIC, "deep.files.example.org": PUBLIC, "raw.example.org": PUBLIC,
         "private.example.org": "10.1.2.3", "loop.example.org": "127.0.0.1", "meta.example.org": "169.254.169.254",
         "zero.example.org": "0.0.0.0", "shared.example.org": "100.64.1.1", "own.example.org": GATE,
         "pypi.org": PUBLIC, "files.pythonhosted.org": PUBLIC, "opened.example.org": PUBLIC, "index.example.org": PUBLIC, "npm.example.org": PUBLIC}
SIX = {"six-private.example.org": "fd00::1", "six-loop.example.org": "::1", "six-mapped.example.org": "::ffff:127.0.0.1",
       "six-nat64.example.org": "64:ff9b::7f00:1", "six-6to4.example.org": "2002:7f00:1::1", "six-link.example.org": "fe80::1"}


class Server(threading.Thread):
    """Serves from when it is made until it is closed. The thread has ended before its socket's number is free: the
    kernel may begin an interrupted call again by that number, which would be another test's socket by then."""

    def __init__(self, place, kind):
        super().__init__(daemon=True)
        with place:
            self.socket = socket.socket(socket.AF_INET, kind)

    def close(self):
        with contextlib.suppress(OSError):  # says that nobody is connected, and wakes the thread all the same
            self.socket.shutdown(socket.SHUT_RDWR)
        self.join()
        self.socket.close()


class NameServer(Server):
    """The internet's DNS; `rebinds` gives another answer each time it is asked."""

    def __init__(self, place):
        super().__init__(place, socket.SOCK_DGRAM)
        self.socket.bind((PUBLIC, 53))
        self.asked = []
        self.start()

    def run(self):
        while True:
            question, peer = self.socket.recvfrom(4096)
            if not question:
                return
            labels, at = [], 12
            while question[at]:
                labels.append(question[at + 1:at + 1 + question[at]].decode())
                at += 1 + question[at]
            kind = struct.unpack(">H", question[at + 1:at + 3])[0]
            name = ".".join(labels).lower()
            self.asked.append(name)
            found = []
            if name == "rebinds.example.org":
                found = [socket.inet_aton(PUBLIC if self.asked.count(name) <= 2 else "127.0.0.1")] if kind == 1 else []
            elif kind == 1 and name in NAMES:
                found = [socket.inet_aton(NAMES[name])]
            elif kind == 28 and name in SIX:
                found = [socket.inet_pton(socket.AF_INET6, SIX[name])]
            answer = question[:2] + struct.pack(">HHHHH", 0x8180, 1, len(found), 0, 0) + question[12:at + 5]
            for data in found:
                answer += struct.pack(">HHHIH", 0xc00c, kind, 1, 0, len(data)) + data
            self.socket.sendto(answer, peer)


class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = []

    def do_GET(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if self.headers.get("Transfer-Encoding") == "chunked":
            while (size := int(self.rfile.readline() or b"0", 16)) > 0:
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        Web.seen.append((self.command, self.path, dict(self.headers), body))
        answer = b"hello from " + self.headers["Host"].encode()
        if self.path.startswith("/bytes/"):
            answer = bytes(int(self.path[7:]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

    def log_message(self, *_):
        pass


def serve_web(place, port, context=None):
    with place:
        server = WebServer((PUBLIC, port), Web)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class EchoServer(Server):
    """Speaks first."""

    def __init__(self, place, port):
        super().__init__(place, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((PUBLIC, port))
        self.socket.listen(1024)
        self.start()

    def run(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.echo, args=(peer,), daemon=True).start()

    def echo(self, peer):
        with peer, contextlib.suppress(OSError):
            peer.sendall(b"welcome\n")
            while block := peer.recv(65536):
                peer.sendall(block)


def close_server(server):
    """A web server has to leave its loop first, or that spins on a closed socket."""
    if isinstance(server, Server):
        server.close()
    else:
        server.shutdown()
        server.server_close()


def certificate(folder):
    """For api.example.org and files.example.org; gives (certificate, key)."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", folder / "key", "-out",
                    folder / "cert", "-subj", "/CN=api.example.org", "-addext",
                    "subjectAltName=DNS:api.example.org,DNS:files.example.org"], check=True, capture_output=True)
    return folder / "cert", folder / "key"

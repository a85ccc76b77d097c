"""peer.py - a server that speaks just enough HTTP, for what needs no daemon."""

import json
import shutil
import socket
import tempfile
import threading

from glovebox._endpoint import Endpoint

KEY = "gb_secret_0123456789"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def answer(value):
    body = json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def events(*rows, after=0):
    text = b"".join(b"event: %b\nid: %d\ndata: %b\n\n" % (kind.encode(), number, json.dumps(data).encode())
                    for number, (kind, data) in enumerate(rows, 1) if number > after)
    return b"%x\r\n%b\r\n" % (len(text), text)


END = {"id": "run_1", "status": "ok", "results": [], "stdout": "x"}


class Peer:
    """Accepts connections on a Unix socket, or with TLS on a port; each is given to `handle` in a thread."""

    def __init__(self, handle, context=None):
        self.folder = tempfile.mkdtemp(prefix="glovebox-peer-")
        self.handle, self.context = handle, context
        self.accepted, self.open, self.requests, self.ended = 0, 0, [], threading.Event()  # `open`: with a thread
        self.lock = threading.Lock()
        self.listener = socket.socket(socket.AF_INET if context else socket.AF_UNIX)
        self.listener.bind(("127.0.0.1", 0) if context else self.folder + "/socket")
        self.listener.listen(1024)
        self.server = {"url": f"https://localhost:{self.listener.getsockname()[1]}"} if context else \
            {"socket": self.folder + "/socket"}
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        shutil.rmtree(self.folder)

    def endpoint(self):
        return Endpoint(api_key=KEY, **self.server)

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            with self.lock:
                self.open += 1
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        try:
            with self.context.wrap_socket(peer, server_side=True) if self.context else peer as connection:
                while True:
                    request = self.request(connection)
                    if request is None:
                        self.ended.set()
                        return
                    self.requests.append(request)
                    if self.handle(connection, request) is False:
                        return
        except OSError:
            pass  # the client has closed it
        finally:
            with self.lock:
                self.open -= 1

    @staticmethod
    def request(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return None
            data += piece
        size = next((int(line.split(b":")[1]) for line in data.split(b"\r\n") if line.startswith(b"Content-Length")), 0)
        while len(data.partition(b"\r\n\r\n")[2]) < size:
            data += connection.recv(65536)
        return data

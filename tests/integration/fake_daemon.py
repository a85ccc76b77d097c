"""A gloveboxd that answers as a test tells it to, honest or not: the CLI must cope with both."""

import json
import socket
import threading

RESULT = {
    "id": "run_1", "status": "ok", "fault": None, "exit_code": 0, "signal": None, "limit": None,
    "limit_hits": [], "stdout": "", "stderr": "",
    "truncated": {"stdout_total_bytes": 0, "stderr_total_bytes": 0, "full_output": None},
    "results": [], "error": None, "artifacts": [], "denials": [], "network": [],
}


def event(name, data):
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def plain(status, body, kind="application/json"):
    return (f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            .encode() + body)


class FakeDaemon:
    """Serves connections on a Unix socket; `script` maps "METHOD /path" to bytes or to a function that
    gets the connection and the request's body."""

    def __init__(self, path, script):
        self.path, self.script, self.requests = str(path), script, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        stream = connection.makefile("rb")
        try:
            while line := stream.readline():
                method, path, _ = line.decode().split()
                length = 0
                while (header := stream.readline().strip()):
                    name, _, value = header.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                body = stream.read(length)
                self.requests.append((method, path, body))
                answer = self.script.get(f"{method} {path}", plain(404, b'{"error":{"code":"not_found",'
                                                                      b'"message":"no such thing; look"}}'))
                if callable(answer):
                    answer(connection, body)
                    return
                connection.sendall(answer)
        except (OSError, ValueError):
            pass
        finally:
            connection.close()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept(); its number may be used again after close
        self.thread.join()
        self.listener.close()


def stream(*events, **result):
    """The answer to a run: events as (name, data), then the end."""
    parts = [event("started", {"id": "run_1"})]
    parts += [event(name, data) for name, data in events]
    parts.append(event("end", RESULT | result))
    body = b"".join(chunk(part) for part in parts) + b"0\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + body

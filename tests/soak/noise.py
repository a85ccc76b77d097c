"""noise.py - thirty and more kinds of noise that one tenant can make, for neighbours.py: programs that use up what
sandboxes share, and clients that use up what gloveboxd has. Each kind is how many clients, and what each of them does,
again and again, whatever it is told."""

import collections
import http.client
import json
import socket
import time


class Client:
    answers: "collections.Counter[str]" = collections.Counter()  # of all clients of this process, by the first digit of their status

    def __init__(self, port, key):
        self.port, self.key = port, key
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.session = None

    def call(self, method, path, body=None, key=None, **headers):
        headers = {"Authorization": f"Bearer {key or self.key}"} | headers
        self.connection.request(method, path, body if isinstance(body, bytes) else body and json.dumps(body), headers)
        answer = self.connection.getresponse()
        self.answers[f"{answer.status // 100}xx"] += 1
        body = answer.read()
        return answer.status, json.loads(body) if answer.headers["Content-Type"] == "application/json" else body

    def run(self, code, **more):
        return self.call("POST", "/v1/runs", {"code": code, "language": "python", "policy": "minimal",
                                              "limits": {"wall_ms": 4000}} | more)

    def in_session(self):
        """Path of a session of this client's own."""
        if not self.session:
            status, answer = self.call("POST", "/v1/sessions", {"policy": "minimal"})
            if status != 201:
                time.sleep(0.05)
                raise OSError("no session")
            self.session = f"/v1/sessions/{answer['id']}"
        return self.session

    def cell(self, code):
        status, answer = self.call("POST", self.in_session() + "/contexts/python/run", {"code": code})
        if status in (404, 409, 410):
            self.session = None
        return answer

    def raw(self, text, seconds):
        """A connection on which little is sent and nothing read."""
        with socket.create_connection(("127.0.0.1", self.port)) as peer:
            peer.sendall(text.encode())
            time.sleep(seconds)


def forever(code, **more):
    return lambda client: client.run(code, **more)


def cells(code):
    return lambda client: client.cell(code)


def branches(client):
    place = client.in_session()
    status, answer = client.call("POST", place + "/branch", {})
    if status == 201:
        client.call("DELETE", f"/v1/sessions/{answer['id']}")


def checkpoints(client):
    place = client.in_session()
    client.cell("x = bytearray(8 << 20)")
    client.call("POST", place + "/checkpoints", {"name": "n"})
    client.call("DELETE", place + "/checkpoints/n")


def files(client):
    place = client.in_session()
    client.call("PUT", place + "/files/big", bytes(8 << 20))
    client.call("GET", place + "/files/big")


def listings(client):
    place = client.in_session()
    client.cell("import os\nfor n in range(5000): open(f'{n:0200}', 'w').close()")
    for _ in range(50):
        client.call("POST", place + "/files:list", {"path": ".", "depth": 3})


def sessions(client):
    client.in_session()
    client.call("DELETE", client.session)
    client.session = None


def follows(client):
    client.raw("GET /v1/network/connections HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
               f"{client.key}\r\nAccept: text/event-stream\r\n\r\n", 2)


def keyed(client):
    client.run("1", check_only=True)
    client.call("POST", "/v1/runs", {"code": "1", "language": "python", "policy": "minimal", "check_only": True},
                **{"Idempotency-Key": f"k{time.monotonic_ns()}"})


LOOP = "import os, socket, threading, time, mmap, signal, subprocess\nwhile True:\n"
KINDS = {
    "quiet": (0, None),
    # what sandboxes share: processors, memory, the kernel's locks and caches, the disk
    "spinners": (16, forever("while True: pass")),
    "memory": (8, forever("a = []\nwhile True: a.append(bytearray(1 << 20))")),
    "forks": (8, forever(LOOP + " try: os.fork()\n except OSError: pass")),
    "children": (8, forever(LOOP + " if os.fork() == 0: os._exit(0)\n os.wait()")),
    "programs": (8, forever(LOOP + " subprocess.run(['/usr/bin/true'])")),
    "threads": (8, forever(LOOP + " t = threading.Thread(target=int)\n t.start()\n t.join()")),
    "files": (8, forever(LOOP + " for n in range(500): open(f'f{n}', 'wb').write(b'x' * 8192)\n"
                         " for n in range(500): os.unlink(f'f{n}')")),
    "syncs": (8, forever(LOOP + " f = open('s', 'wb')\n f.write(bytes(1 << 20))\n os.fsync(f.fileno())\n os.sync()")),
    "renames": (8, forever("open('a', 'w').close()\n" + LOOP + " os.rename('a', 'b')\n os.rename('b', 'a')")),
    "reads": (8, forever("import os\nwhile True:\n for at, _, names in os.walk('/usr'):\n  for name in names:\n"
                         "   try: open(os.path.join(at, name), 'rb').read()\n   except OSError: pass")),
    "ping-pong": (8, forever("import os, socket\na, b = socket.socketpair()\nif os.fork() == 0:\n"
                             " while True: b.send(b.recv(1))\nwhile True:\n a.send(b'x'); a.recv(1)")),
    "mappings": (8, forever(LOOP + " m = mmap.mmap(-1, 8 << 20)\n m[:] = bytes(8 << 20)\n m.close()")),
    "signals": (8, forever("import os, signal\nsignal.signal(10, lambda *_: None)\nparent = os.getpid()\n"
                           "os.fork() or os.fork()\nwhile True: os.kill(parent, 10)")),
    "timers": (8, forever("import signal, time\nsignal.signal(14, lambda *_: None)\n"
                          "signal.setitimer(signal.ITIMER_REAL, 1e-5, 1e-5)\nwhile True: time.sleep(1e-5)")),
    "yields": (8, forever("import os\nfor _ in range(4): os.fork()\nwhile True: os.sched_yield()")),
    "faults": (8, forever(LOOP + " if os.fork() == 0: os.kill(os.getpid(), 11)\n os.wait()")),
    # what glovebox-init and gloveboxd do for a program
    "denials": (8, forever(LOOP + " try: socket.socket(socket.AF_INET)\n except OSError: pass")),
    "output": (8, forever("while True: print('x' * 100000)")),
    "artifacts": (8, forever("for n in range(256): open(f'{n}', 'w').write(str(n) * 100)")),
    "new artifacts": (8, forever("import os\nfor n in range(256): open(f'{n}', 'wb').write(os.urandom(100))")),
    "results": (4, cells("{str(n): n for n in range(49000)}")),
    "escapes": (4, cells("'\\x01' * (1 << 20)")),
    "words": (8, cells("for n in range(20000): print(n)")),
    "errors": (8, cells("def f(n): return f(n + 1)\nf(0)")),
    # what clients ask of gloveboxd
    "connections": (200, forever("print(1)")),
    "sessions": (8, sessions),
    "branches": (4, branches),
    "checkpoints": (4, checkpoints),
    "transfers": (4, files),
    "listings": (4, listings),
    "bad requests": (32, lambda client: client.call("POST", "/v1/runs", b'{"code": ' + b"[" * 60)),
    "large bodies": (8, forever("#" + "x" * (4 << 20), check_only=True)),
    "wrong keys": (32, lambda client: client.call("GET", "/v1/runs", key="glb_wrong")),
    "no routes": (32, lambda client: client.call("GET", "/v1/nothing")),
    "auditors": (16, lambda client: client.call("GET", "/v1/receipts?limit=100")),
    "checkpoints of the log": (16, lambda client: client.call("GET", "/v1/log/checkpoint")),
    "metrics": (16, lambda client: client.call("GET", "/metrics")),
    "keyed": (16, keyed),
    "silent": (100, lambda client: client.raw("POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Le", 2)),
    "followers": (100, follows),
}

"""Measures cells of one session: a round trip, and a captured figure compared with savefig."""

import json
import random
import socket
import time

FIGURE = ("import io\nfrom matplotlib.figure import Figure\nf = Figure()\na = f.subplots()\n"
          "for i in range(3): a.plot([x * i % 7 for x in range(50)], label=str(i))\n"
          "a.legend(); a.set_title('bench'); a.set_xlabel('x (s)'); a.set_ylabel('y')\n")
# The two forms in which a figure is shown, by the calls that a program would write.
SAVED = "for kind in ('png', 'svg'): f.savefig(io.BytesIO(), format=kind)\n"
CAPTURED = "f"
PANDAS = "import pandas as pd\ndf = pd.DataFrame({'a': range(1000)})\ndf.describe()"
# What is branched: pandas, a frame of 104 MiB, and 10 MiB of files.
LARGE = ("import numpy as np, pandas as pd, os\nframe = pd.DataFrame(np.random.default_rng(1).random((1 << 20, 12)))\n"
         "frame[12] = 0.5\n"
         "for n in range(10): open(f'/workspace/{n}', 'wb').write(os.urandom(1 << 20))\nframe[3].sum()")
USED = "float(frame[3].sum()), len(open('/workspace/3', 'rb').read())"


class Cells:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        _, session = self.ask("POST", "/v1/sessions", {"policy": "data"})
        self.place = f"/v1/sessions/{session['id']}"
        self.run(FIGURE + SAVED + CAPTURED)
        self.parent = None  # of branches

    def ask(self, method, path, body=None):
        """Milliseconds, and the answer."""
        content = json.dumps(body).encode() if body is not None else b""
        request = (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n").encode() \
            + content
        began = time.perf_counter()
        self.socket.sendall(request)
        data, size = b"", None
        while size is None or len(data) < size:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise ConnectionError("the daemon hung up")
            data += piece
            if size is None and b"\r\n\r\n" in data:
                head = data[: data.index(b"\r\n\r\n")].lower()
                size = len(head) + 4 + int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        took = (time.perf_counter() - began) * 1e3
        return took, json.loads(data[data.index(b"\r\n\r\n") + 4:])

    def run(self, code):
        took, result = self.ask("POST", f"{self.place}/contexts/python/run", {"code": code})
        if result.get("status") != "ok":
            raise RuntimeError(f"cell: {result}")
        return took, result["results"]

    def measure(self, add):
        for _ in range(5):  # as far apart as the runs of hello
            time.sleep(random.uniform(0.025, 0.060))
            add("cell, paced", self.run("1 + 1")[0])
        for _ in range(5):
            add("cell, back to back", self.run("1 + 1")[0])
        add("figure bare", self.run(SAVED)[0])
        took, results = self.run(CAPTURED)
        if not {"image/png", "image/svg+xml"} <= set(results[0]["data"]) or results[0]["chart"]["type"] != "line":
            raise RuntimeError("the figure was not captured")
        add("figure captured", took)
        return True

    def begin(self, add):
        """A session of its own: from the wish for it to its first result, and its first use of pandas."""
        began = time.perf_counter()
        _, session = self.ask("POST", "/v1/sessions", {"policy": "data"})
        first, self.place = self.place, f"/v1/sessions/{session['id']}"
        try:
            self.run("1 + 1")
            add("new session, first result", (time.perf_counter() - began) * 1e3)
            add("new session, first pandas", self.run(PANDAS)[0])
        finally:
            self.ask("DELETE", self.place)
            self.place = first
        time.sleep(0.4)  # its successor is parked meanwhile
        return True

    def branch(self, add):
        """To the answer, when its moment is fixed, and to a result that needs its memory and its files."""
        first = self.place
        try:
            if not self.parent:
                _, session = self.ask("POST", "/v1/sessions", {"policy": "data"})
                self.parent = self.place = f"/v1/sessions/{session['id']}"
                self.run(LARGE)
            began = time.perf_counter()
            took, session = self.ask("POST", f"{self.parent}/branch", {})
            if "id" not in session:
                raise RuntimeError(f"branch: {session}")
            self.place = f"/v1/sessions/{session['id']}"
            self.run(USED)
            add("branch, to its answer", took)
            add("branch, to its first result", (time.perf_counter() - began) * 1e3)
            self.ask("DELETE", self.place)
        finally:
            self.place = first
        time.sleep(0.4)  # its successor is parked meanwhile
        return True

    def close(self):
        """Its sessions hold sandboxes: what comes after is measured without them."""
        if self.socket.fileno() < 0:
            return
        try:
            for place in filter(None, (self.place, self.parent)):
                self.ask("DELETE", place)
        except ConnectionError:  # hung up on while the bench did other things; it ends with the daemon
            pass
        self.socket.close()

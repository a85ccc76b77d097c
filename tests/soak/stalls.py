#!/usr/bin/python3
"""Measures how long one program can delay all other requests: tests/soak/stalls.py BUILD [SECONDS [KIND…]]

Programs do what costs gloveboxd the most for each byte or call of theirs, each kind for some seconds, while another client asks
for /healthz fifty times a second. Prints how long that took beside it (p50, p95, most) and, where /metrics tells them, the turns of
the event loop that took longer than 25 ms and 50 ms. Ends with 1 if a turn took longer than 50 ms in gloveboxd (a
machine that gives it no processor counts as well: run it alone), or if a program did not do what it is for."""

import json
import re
import sys
import tempfile
import threading
import time

from service import TOP, Caller, Service

SESSIONS, EVERY_S, MOST_MS = 4, 0.02, 50

SAY = """
import json, os, struct
def say(text, what=2):
    body = text.encode()
    for at in range(0, len(body), 60000):
        piece = body[at:at + 60000]
        frame = struct.pack("<IHHIIHHI", 8 + len(piece), 76, 0, 16, 0, what, at + 60000 >= len(body), 0) + piece
        while frame:
            frame = frame[os.write(63, frame):]
def shown(value): return '{"data":{"application/json":' + value + '}}'
"""

KINDS = {
    "keys": "text = shown('{' + ','.join('\"%x\":%d' % (i, i % 10) for i in range(49000)) + '}')\n"
            "for _ in range(240): say(text)",
    "keys that come to nothing": "text = '{\"else\":{' + ','.join('\"%x\":%d' % (i, i % 10) for i in range(49000)) + '}}'\n"
                                 "for _ in range(240): say(text)",
    "escapes": "text = shown('\"' + '\\\\u00e9' * (8 * 1024 * 1024 // 6 - 20) + '\"')\nfor _ in range(15): say(text)",
    "one long text": "text = shown('\"' + 'x' * (8 * 1024 * 1024 - 60) + '\"')\nfor _ in range(15): say(text)",
    "small results": "text = shown('1')\nfor _ in range(200000): say(text)",
    "an error with frames": "text = '{\"name\":\"E\",\"frames\":[' + ','.join('{}' for _ in range(90000)) + ']}'\n"
                            "for _ in range(400): say(text, 3)",
    "output": "import sys\nfor _ in range(15): sys.stdout.write('\\x00\\xff' * (1 << 19)); sys.stdout.flush()",
    "refused calls": "import socket\nfor _ in range(60000):\n  try: socket.socket(socket.AF_NETLINK)\n  except OSError: pass",
    "many files": "import os\nos.makedirs('d', exist_ok=True)\nfor i in range(4000): open(f'd/{i}', 'w').close()",
}

ENDS = {"an error with frames": "E", "output": "output"}  # an error or a limit that may end it, besides the wall clock


def turns_of(path):
    """Of the loop: those over 25 ms and over 50 ms, and the causes of slow ones; None where /metrics does not tell them."""
    caller = Caller(path)
    caller.call("GET", "/healthz")
    caller.connection.request("GET", "/metrics")
    text = caller.connection.getresponse().read().decode()
    at = {bound: int(count) for bound, count in re.findall(r'glovebox_loop_turn_seconds_bucket\{le="([^"]*)"\} (\d+)', text)}
    causes = {what: int(count) for what, count in re.findall(r'glovebox_loop_slow_turns_total\{cause="([^"]*)"\} (\d+)', text)}
    return (at["+Inf"] - at["0.0250"], at["+Inf"] - at["0.0500"], causes) if at else None


class Attack(threading.Thread):
    def __init__(self, path, kind):
        super().__init__(daemon=True)
        self.caller, self.kind, self.until, self.cells, self.wrong = Caller(path), kind, 0, 0, None
        body = json.dumps({"policy": "data", "limits": {"cpu_ms": 600000}}).encode()
        status, session = self.caller.call("POST", "/v1/sessions", body)
        if status != 201:
            raise SystemExit(f"no session: {status} {session}")
        self.base = f"/v1/sessions/{session['id']}"

    def run(self):
        code = KINDS[self.kind]
        cell = json.dumps({"code": SAY + code}).encode()
        while time.monotonic() < self.until:
            status, answer = self.caller.call("POST", f"{self.base}/contexts/python/run", cell)
            end = (answer["limit"] or answer["error"] or {"name": None})["name"] if status == 200 else status
            if end not in (None, "wall", ENDS.get(self.kind)):
                self.wrong = f"a cell ended with {end}: {str(answer)[:300]}"
            if "makedirs" in code:
                self.caller.call("POST", f"{self.base}/files:list", json.dumps({"path": "/workspace", "depth": 3}).encode())
            self.cells += 1
        self.caller.call("DELETE", self.base)


def look(path, kind, seconds):
    """Times of /healthz in ms while programs of this kind run (None: nothing does), how many cells came to their end, and
    what was wrong."""
    attacks = [Attack(path, kind) for _ in range(SESSIONS if kind else 0)]
    until = time.monotonic() + seconds
    for attack in attacks:
        attack.until = until
        attack.start()
    caller, took = Caller(path), []
    while time.monotonic() < until:
        begin = time.monotonic()
        caller.call("GET", "/healthz")
        took.append((time.monotonic() - begin) * 1e3)
        time.sleep(max(0, EVERY_S - (time.monotonic() - begin)))
    for attack in attacks:
        attack.join(120)
    wrong = {attack.wrong for attack in attacks if attack.wrong}
    if any(attack.cells == 0 for attack in attacks):
        wrong.add("a session without a cell that ended")
    return sorted(took), sum(attack.cells for attack in attacks), wrong


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else f"{TOP}/build"
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5
    wanted = sys.argv[3:] or [None, *KINDS]
    is_slow = is_wrong = False
    with tempfile.TemporaryDirectory(prefix="glovebox-stalls-") as folder, Service(build, folder, 32) as service:
        before = turns_of(service.socket)
        for kind in wanted:
            took, cells, wrong = look(service.socket, kind, seconds)
            turns = turns_of(service.socket)
            line = (f"{kind or 'quiet':26} healthz p50 {took[len(took) // 2]:6.1f} p95 {took[len(took) * 95 // 100]:6.1f} "
                    f"most {took[-1]:6.1f} ms; {cells} cells")
            if turns:
                causes = {what: count - before[2].get(what, 0) for what, count in turns[2].items() if count > before[2].get(what, 0)}
                line += f"; turns over 25 ms {turns[0] - before[0]}, over 50 ms {turns[1] - before[1]} {causes or ''}"
                is_slow |= turns[1] > before[1]
                before = turns
            is_wrong |= bool(wrong)
            print("\n  ".join([line, *wrong]), flush=True)
    return 1 if is_slow or is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""client.py - processor time of the Python package for a warm call: tests/bench/client.py SOCKET [ROUNDS].

In turns with a bare socket and with http.client, which send the same request and read the answer's JSON, in one thread of
one process, so that all meet the same other work. What of it is Python is measured apart: the same call, with the answer at hand."""

import http.client
import json
import pathlib
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "packages/python/src"))

import glovebox  # noqa: E402
from glovebox._sync import client  # noqa: E402

BODY = json.dumps({"code": "print(1)", "policy": "minimal", "mode": "cell"}).encode()
REQUEST = (b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
           % len(BODY)) + BODY
WARMED = 20  # calls before the first that counts


class Bare:
    def __init__(self, path):
        self.peer = socket.socket(socket.AF_UNIX)
        self.peer.connect(path)
        self.data = b""

    def __call__(self):
        self.peer.sendall(REQUEST)
        data = self.peer.recv(1 << 18)
        head, _, body = data.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        while len(body) < size:
            body += self.peer.recv(1 << 18)
        self.data = head + b"\r\n\r\n" + body
        return json.loads(body)


class Library:
    """http.client, on a kept connection."""

    def __init__(self, path):
        self.connection = http.client.HTTPConnection("localhost")
        self.connection.sock = socket.socket(socket.AF_UNIX)
        self.connection.sock.connect(path)

    def __call__(self):
        self.connection.request("POST", "/v1/runs", BODY, {"Content-Type": "application/json"})
        return json.loads(self.connection.getresponse().read())


class AtHand(client.Stream):
    """A connection whose answer has come already."""

    answer = b""

    @classmethod
    def connect(cls, endpoint):
        stream = cls.__new__(cls)
        stream.idle_since = 0.0
        return stream

    def send(self, data):
        pass

    def receive(self, timeout=None):
        return self.answer

    def is_stale(self):
        return False


def cost(call):
    begin = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - begin) / 1000


def say(name, costs):
    costs.sort()
    print(f"{name:12} " + "  ".join(f"p{share} {costs[len(costs) * share // 100]:6.0f} µs" for share in (5, 25, 50, 75)))


def main():
    path, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 500
    bare, library = Bare(path), Library(path)

    def package():
        return glovebox.run("print(1)", policy="minimal", socket=path)
    for _ in range(WARMED):
        assert bare()["stdout"] == library()["stdout"] == package().stdout == "1\n"
    costs = [(cost(bare), cost(package), cost(library)) for _ in range(rounds)]
    for name, column in zip(("bare socket", "package", "http.client"), zip(*costs)):
        say(name, list(column))
    AtHand.answer, client.Stream = bare.data, AtHand

    def at_hand():
        return glovebox.run("print(1)", policy="minimal", socket="/at/hand")
    for _ in range(WARMED):
        at_hand()
    say("its Python", [cost(at_hand) for _ in range(rounds)])


main()

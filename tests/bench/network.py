#!/usr/bin/python3
"""Measures the cost of network connections through glovebox-egress: tests/bench/network.py BUILD. The same client and
server talk over one loopback without glovebox-egress and through it, in turns; nothing leaves the namespaces that the
bench makes. Needs root."""
import contextlib
import os
import pathlib
import random
import resource
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import load
import report

ECHO, SOURCE, SINK = 7001, 7002, 7003
BULK = 256 << 20
CONNECTIONS = 1000
SANDBOXES = 40  # with 25 each: the last quarter of all is for those who have few


def serve(egress, port, handle):
    """One process for each server, so that nobody waits for another's interpreter."""
    with egress.gate:
        listener = socket.create_server(("127.0.0.1", port), backlog=1024)
    child = os.fork()
    if child == 0:
        egress.daemon.close()
        with contextlib.suppress(BaseException):
            handle(listener)
        os._exit(0)
    listener.close()
    return child


def greet(listener):
    """Says one byte at once and keeps the connection until its client leaves."""
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                peer, _ = listener.accept()
                peer.sendall(b"!")
                selector.register(peer, selectors.EVENT_READ)
            else:
                selector.unregister(key.fileobj)
                key.fileobj.close()


def send_bulk(listener):
    block = bytes(1 << 20)
    while True:
        peer, _ = listener.accept()
        with peer, contextlib.suppress(OSError):
            for _ in range(BULK >> 20):
                peer.sendall(block)


def take_bulk(listener):
    room = bytearray(1 << 20)
    while True:
        peer, _ = listener.accept()
        with peer, contextlib.suppress(OSError):
            while peer.recv_into(room):
                pass
            peer.sendall(b"!")


def connect(place, port):
    with place:
        peer = socket.socket()
    peer.settimeout(30)
    peer.connect(("127.0.0.1", port))
    return peer


def set_up(place):
    """Milliseconds from connect() to the first byte of the server."""
    begin = time.perf_counter()
    with connect(place, ECHO) as peer:
        assert peer.recv(1) == b"!"
        return (time.perf_counter() - begin) * 1e3


def download(place):
    """MiB a second."""
    room = bytearray(1 << 20)
    begin, got = time.perf_counter(), 0
    with connect(place, SOURCE) as peer:
        while count := peer.recv_into(room):
            got += count
    assert got == BULK, got
    return got / (time.perf_counter() - begin) / (1 << 20)


def upload(place):
    block = bytes(1 << 20)
    begin = time.perf_counter()
    with connect(place, SINK) as peer:
        for _ in range(BULK >> 20):
            peer.sendall(block)
        peer.shutdown(socket.SHUT_WR)
        assert peer.recv(1) == b"!"
    return BULK / (time.perf_counter() - begin) / (1 << 20)


def resident(pid):
    """KiB."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise ValueError("no VmRSS")


def hold(egress, rule, terms):
    """KiB that glovebox-egress has grown by while 1,000 connections of many sandboxes pass bytes at once."""
    peers = []
    before = resident(egress.process.pid)
    with contextlib.ExitStack() as sandboxes:
        for _ in range(SANDBOXES):
            sandboxes.enter_context(egress.another_sandbox())
            sandboxes.enter_context(egress.channel([rule], **terms))
            peers += [connect(egress.inside, ECHO) for _ in range(CONNECTIONS // SANDBOXES)]
        for peer in peers:
            assert peer.recv(1) == b"!"
        grown = resident(egress.process.pid) - before
        for peer in peers:
            peer.close()
    return grown


def measure(rounds):
    """name -> figures, of which some are ratios; all of the same minutes."""
    from egress_rig import Egress  # pylint: disable=import-outside-toplevel; it wants to know the build
    egress = Egress("127.0.0.1:53")
    children = [serve(egress, port, handle) for port, handle in
                ((ECHO, greet), (SOURCE, send_bulk), (SINK, take_bulk))]
    found = {}
    try:
        terms = {"ports": (ECHO, SOURCE, SINK), "connections": 1000}
        rule = {"network": "127.0.0.0/8", "ports": [ECHO, SOURCE, SINK]}
        with egress.channel([rule], **terms):
            for number in range(rounds + 1):
                for name, how, times in (("set-up", set_up, 40), ("download", download, 1), ("upload", upload, 1)):
                    for way, place in random.sample((("direct", egress.gate), ("egress", egress.inside)), 2):
                        values = [how(place) for _ in range(times)]
                        if number > 0:  # the first is warm-up
                            found.setdefault(f"{name} {way}", []).extend(values)
        found["connections"] = [hold(egress, rule, terms)]
    finally:
        egress.close()
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return found


def egress_of(service):
    """The service may answer before its glovebox-egress is there."""
    for _ in range(100):
        for pid in pathlib.Path(f"/proc/{service}/task/{service}/children").read_text(encoding="ascii").split():
            if pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="ascii").startswith("glovebox-egress"):
                return int(pid)
        time.sleep(0.1)
    raise RuntimeError("glovebox serve has no glovebox-egress")


def run_beside(glovebox, folder, rounds):
    """Runs without a network while glovebox-egress lives, and while it is stopped: a run that depended on it would
    wait for ever."""
    path = f"{folder}/network.sock"
    found = {"run with network none": [], "run with network none, egress stopped": []}
    with open(f"{folder}/network.log", "w", encoding="utf-8") as log:
        os.environ["GLOVEBOX_MEASURE_TEMPLATES"] = "false"
        service = subprocess.Popen([glovebox, "serve", "--socket", path], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        for _ in range(100):
            with contextlib.suppress(OSError):
                client = load.Client(path)
                break
            time.sleep(0.1)
        egress = egress_of(service.pid)
        for _ in range(rounds):
            for name, order in random.sample(list(zip(found, (signal.SIGCONT, signal.SIGSTOP))), 2):
                os.kill(egress, order)
                time.sleep(random.uniform(0.025, 0.060))
                took, result = client.run("print('hello sandbox')", policy="minimal")
                assert result["status"] == "ok", result
                found[name].append(took)
        os.kill(egress, signal.SIGCONT)
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(30)
    return found


def rows_of(found):
    """Rows as report.py wants them."""
    middle = {name: statistics.median(values) for name, values in found.items()}
    rows = [{"name": f"way out, {name}", "p50_ms": value} for name, value in middle.items() if name.startswith("set-up")]
    rows.append({"name": "way out, set-up added", "p50_ms": middle["set-up egress"] - middle["set-up direct"]})
    for way in ("download", "upload"):
        pairs = zip(found[f"{way} egress"], found[f"{way} direct"])  # of the same second
        rows.append({"name": f"way out, {way} beside loopback",
                     "share": statistics.median(egress / direct for egress, direct in pairs)})
    rows.append({"name": f"way out, {CONNECTIONS} connections", "mib": middle["connections"] / 1024})
    none, stopped = (middle[name] for name in ("run with network none", "run with network none, egress stopped"))
    rows.append({"name": "network none, while egress is stopped", "share": stopped / none, "p50_ms": stopped})
    return rows, middle


def measure_all(build, folder, rounds):
    """All rows, and the figures that they come from."""
    os.environ["GLOVEBOX_BUILD"] = os.path.abspath(build)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))
    return rows_of(measure(rounds) | run_beside(f"{os.path.abspath(build)}/glovebox", folder, 10 * rounds))


def main():
    build = next((word for word in sys.argv[1:] if not word.startswith("--")), "build")
    with tempfile.TemporaryDirectory(prefix="glovebox-bench-") as folder:
        rows, middle = measure_all(build, folder, 3 if "--quick" in sys.argv else 8)
    for name, value in middle.items():
        print(f"{name:38} {value:10.3f}")
    print(report.for_terminal(report.table(report.judge_all(rows))))


if __name__ == "__main__":
    main()

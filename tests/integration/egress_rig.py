"""egress_rig.py - glovebox-egress on its own: the test plays gloveboxd, the sandbox and the internet, each in a network
namespace that it made. No packet leaves them.

    sandbox (lo only, every address is local)  --listening sockets-->  glovebox-egress  --veth-->  the internet"""

import array
import contextlib
import ctypes
import os
import pathlib
import resource
import socket
import struct
import subprocess
import threading
import time

from conftest import BUILD

CLONE_NEWNET = 0x40000000
SO_SNDBUFFORCE = 32
PUBLIC = "93.184.216.34"  # where the test's servers are; it exists in this test's namespaces only
GATE = "93.184.216.1"     # glovebox-egress's own address
HELLO, RECORD, CLOSED, AUTHORITY, BEGUN, RULE, OPEN, CLOSE, ENDPOINT = 1, 2, 3, 5, 6, 32, 33, 34, 36
RULE_BODY = struct.Struct("<IHHIHH8H16s254s192sH")
ENDPOINT_BODY = struct.Struct("<IIIHHHH32s254s192s48s48s48s48s")
OPEN_BODY = struct.Struct("<IIIIQQH8HHII4x")
AUTHORITY_BODY = struct.Struct("<IHHH960s")
RECORD_BODY = struct.Struct("<IHHHHHBBQQQIII16s254s16s192s")
TOP = pathlib.Path(__file__).resolve().parents[2]
REASONS = ["ALLOWED"] + [line.split("(")[1].split(",")[0] for line in
                         (TOP / "src/contract/egress_reasons.def").read_text(encoding="utf-8").splitlines()
                         if line.startswith("REASON(")]
METHODS = {"GET": 1, "HEAD": 2, "POST": 4, "PUT": 8, "PATCH": 16, "DELETE": 32, "OPTIONS": 64}

libc = ctypes.CDLL(None, use_errno=True)


def must(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), what)


class Namespace:
    """A network namespace. `with it:` puts this thread into it; sockets made there stay there."""

    def __init__(self):
        self.fd, self.before = None, []
        maker = threading.Thread(target=self._make)
        maker.start()
        maker.join()
        self.run("ip", "link", "set", "lo", "up")

    def _make(self):
        must(libc.unshare(CLONE_NEWNET), "unshare")
        self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY)

    def __enter__(self):
        self.before.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))
        must(libc.setns(self.fd, CLONE_NEWNET), "setns")
        return self

    def __exit__(self, *_):
        before = self.before.pop()
        must(libc.setns(before, CLONE_NEWNET), "setns")
        os.close(before)

    def run(self, *command):
        with self:
            subprocess.run(command, check=True, capture_output=True, pass_fds=[self.fd])

    def has_connections(self):
        """One that both ends have closed is not there any more, or in TIME_WAIT (6)."""
        with self:
            rows = [line.split() for family in ("tcp", "tcp6")
                    for line in pathlib.Path(f"/proc/thread-self/net/{family}").read_text(encoding="utf-8").splitlines()[1:]]
        return any(int(row[3], 16) not in (6, 7, 10) for row in rows)  # 7: closed, 10: listens

    def wait_for_ends(self):
        """An end is recorded when glovebox-egress sees it, which its client is not told. What is open on purpose stays so."""
        end = time.monotonic() + 2
        while self.has_connections() and time.monotonic() < end:
            time.sleep(0.005)

    def close(self):
        os.close(self.fd)


def sandbox():
    """A namespace as a sandbox with a way out has it: every address is local."""
    inside = Namespace()
    for family, everything in (("-4", "0.0.0.0/0"), ("-6", "::/0")):
        inside.run("ip", family, "route", "add", "local", everything, "dev", "lo")
    return inside


def gate_and_internet():
    """Where glovebox-egress stands, and what it takes for the internet: two namespaces, one cable."""
    gate, outside = Namespace(), Namespace()
    with gate:
        subprocess.run(["ip", "link", "add", "gate", "type", "veth", "peer", "name", "servers", "netns",
                        f"/proc/self/fd/{outside.fd}"], check=True, pass_fds=[outside.fd])
    for place, name, address in ((gate, "gate", GATE), (outside, "servers", PUBLIC)):
        place.run("ip", "address", "add", f"{address}/24", "dev", name)
        place.run("ip", "link", "set", name, "up")
    return gate, outside


def read_record(body):
    fields = RECORD_BODY.unpack(body)
    names = ("channel", "reason", "label", "way", "port", "status", "is_tls", "is_intercepted", "sent", "received", "began_ms", "took_ms",
             "is_begun", "scrubbed", "address", "name", "method", "path")
    record = dict(zip(names, fields))
    for name in ("name", "method", "path"):
        record[name] = record[name].split(b"\0")[0].decode()
    record["reason"] = REASONS[record["reason"]]
    address = record["address"]
    record["address"] = (socket.inet_ntop(socket.AF_INET, address[12:]) if address[:12] == bytes(10) + b"\xff\xff"
                         else socket.inet_ntop(socket.AF_INET6, address))
    return record


def with_hosts(path, command):
    """The command as an unprivileged user who finds this file at /etc/hosts; and what Popen has to say of users."""
    if not path:
        return command, {"user": 65534, "group": 65534, "extra_groups": []}
    return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec setpriv --reuid 65534 --regid 65534 '
            '--clear-groups "$@"', str(path), *command], {}


class Egress:
    """The program, and the three namespaces around it."""

    def __init__(self, resolver, files=None, secrets=None, ca_file=None, hosts=None):
        self.inside = sandbox()
        self.gate, self.outside = gate_and_internet()
        self.daemon, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # records lie in the kernel until read_to_end() reads them; what does not fit would be lost
        theirs.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 24)
        given = [open(path, "rb") for path in (secrets, ca_file) if path]
        more = ["--secrets", f"{given[0].fileno()}={secrets}"] if secrets else []
        more += ["--ca-file", f"{given[-1].fileno()}={ca_file}"] if ca_file else []
        command, user = with_hosts(hosts, [str(BUILD / "glovebox-egress"), "--daemon", str(theirs.fileno()), "--resolver",
                                           resolver, *more])
        with self.gate:
            self.process = subprocess.Popen(command, pass_fds=[theirs.fileno(), *(file.fileno() for file in given)], **user,
                                            preexec_fn=lambda: files and resource.setrlimit(
                                                resource.RLIMIT_NOFILE, (files, files)))
        theirs.close()
        for file in given:
            file.close()
        self.daemon.settimeout(20)
        assert struct.unpack("<I", self.daemon.recv(4096)[:4])[0] == HELLO
        self.records, self.begun, self.channels = [], [], 0

    def close(self):
        self.daemon.close()
        self.process.wait(10)
        for place in (self.inside, self.gate, self.outside):
            place.close()

    def send(self, kind, body, fds=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.daemon.sendmsg([struct.pack("<I", kind) + body], rights)

    def listen(self, ports):
        """What glovebox-init makes inside: DNS by UDP and TCP, the proxy, the ports."""
        made = []
        with self.inside:
            for kind, port in [(socket.SOCK_DGRAM, 53), (socket.SOCK_STREAM, 53), (socket.SOCK_STREAM, 3128)] + [
                    (socket.SOCK_STREAM, port) for port in ports]:
                listener = socket.socket(socket.AF_INET6, kind)
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if kind == socket.SOCK_DGRAM:
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
                listener.bind(("::", port))
                if kind == socket.SOCK_STREAM:
                    listener.listen(64)
                made.append(listener)
        return made

    def open(self, rules, ports=(80, 443), connections=32, sent=1 << 40, received=1 << 40, duration_ms=0,
             endpoints=None, life_s=3600):
        self.channels += 1
        number = self.channels
        endpoints = [] if endpoints is None else endpoints
        for endpoint in endpoints:
            headers = [name.encode() for name in endpoint.get("headers", [])]
            body = ENDPOINT_BODY.pack(number, endpoint.get("rate", 0), endpoint.get("idle_ms", 120000), endpoint["port"], endpoint.get("is_tls", 0), len(headers),
                                      0, endpoint["name"].encode(), endpoint["host"].encode(),
                                      endpoint.get("path", "").encode(), *headers, *[b""] * (4 - len(headers)))
            self.send(ENDPOINT, body + bytes(-len(body) % 4))
        for label, rule in enumerate(rules):
            host, flags = rule.get("host", ""), 0
            if host.startswith("*."):
                host, flags = host[2:], 1
            if "endpoint" in rule:
                flags |= 8
            if rule.get("intercept"):
                flags |= 16
            network, prefix = bytes(16), 0
            if "network" in rule:
                flags |= 4 if host else 2
                address, _, bits = rule["network"].partition("/")
                network = bytes(10) + b"\xff\xff" + socket.inet_aton(address)
                prefix = 96 + int(bits)
            allowed = rule.get("ports", [443])
            body = RULE_BODY.pack(number, label, flags, sum(METHODS[name] for name in rule.get("methods", [])),
                                  len(allowed), prefix, *allowed, *[0] * (8 - len(allowed)), network, host.encode(),
                                  rule.get("path", "").encode(), rule.get("endpoint", 0))
            self.send(RULE, body + bytes(-len(body) % 4))
        listeners = self.listen(ports)
        self.send(OPEN, OPEN_BODY.pack(number, len(rules), connections, duration_ms, sent, received, len(ports),
                                       *ports, *[0] * (8 - len(ports)), 0, len(endpoints), life_s), [one.fileno() for one in listeners])
        for one in listeners:
            one.close()
        self.authority = self.hear_authority(number) if any(rule.get("intercept") for rule in rules) else None
        return number

    def hear(self):
        """Reads one message; true if it was a record. Its channel's end gives it, with the others."""
        message = self.daemon.recv(4096)
        kind = struct.unpack("<I", message[:4])[0]
        assert kind in (RECORD, BEGUN), kind
        record = read_record(message[4:4 + RECORD_BODY.size])
        if kind == RECORD:
            self.records.append(record)
        else:
            self.begun.append(record["channel"])
        return kind == RECORD

    def hear_authority(self, number):
        """The certificate that the sandbox is to trust; it comes in pieces."""
        text = b""
        while True:
            message = self.daemon.recv(4096)
            kind = struct.unpack("<I", message[:4])[0]
            if kind == RECORD:
                self.records.append(read_record(message[4:4 + RECORD_BODY.size]))
                continue
            if kind == BEGUN:
                self.begun.append(read_record(message[4:4 + RECORD_BODY.size])["channel"])
                continue
            assert kind == AUTHORITY, kind
            channel, start, size, whole, piece = AUTHORITY_BODY.unpack(message[4:4 + AUTHORITY_BODY.size])
            assert (channel, start) == (number, len(text))
            text += piece[:size]
            if len(text) == whole:
                return text.decode()

    def end(self, number):
        """Ends the channel; gives its records."""
        self.send(CLOSE, struct.pack("<II", number, 0))
        return self.read_to_end(number)

    def read_to_end(self, number):
        found = [one for one in self.records if one["channel"] == number]
        while True:
            message = self.daemon.recv(4096)
            kind = struct.unpack("<I", message[:4])[0]
            if kind == RECORD:
                record = read_record(message[4:4 + RECORD_BODY.size])
                (found if record["channel"] == number else self.records).append(record)
            elif kind == BEGUN:
                self.begun.append(read_record(message[4:4 + RECORD_BODY.size])["channel"])
            elif kind == CLOSED:
                self.lost = struct.unpack("<II", message[4:12])[1]
                assert self.begun.count(number) == sum(record["is_begun"] for record in found), "each that began has ended"
                return found

    @contextlib.contextmanager
    def channel(self, rules, records=None, **terms):
        number = self.open(rules, **terms)
        try:
            yield self
            self.inside.wait_for_ends()
        finally:
            found = self.end(number)
            if records is not None:
                records += found

    @contextlib.contextmanager
    def another_sandbox(self):
        """Channels that are opened here are those of another sandbox."""
        before, self.inside = self.inside, sandbox()
        try:
            yield
        finally:
            self.inside.close()
            self.inside = before

    # --- what code inside does -----------------------------------------------------------------------

    def connect(self, address, port, timeout=10):
        with self.inside:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            peer = socket.socket(family)
        peer.settimeout(timeout)
        peer.connect((address, port))
        return peer

    def ask(self, name, kind=1, tcp=False, raw=None):
        """(code, addresses) of a question about a name."""
        question = raw if raw is not None else b"".join(
            bytes([len(label)]) + label.encode() for label in name.split(".") if label) + b"\0"
        message = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + question + struct.pack(">HH", kind, 1)
        if tcp:
            with self.connect("127.0.0.1", 53) as peer:
                peer.sendall(struct.pack(">H", len(message)) + message)
                answer = peer.recv(4096)[2:]
        else:
            with self.inside:
                peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            with peer:
                peer.settimeout(5 if raw is None else 1)
                peer.sendto(message, ("127.0.0.1", 53))
                answer, sender = peer.recvfrom(4096)
                assert sender == ("127.0.0.1", 53)
        code, count = struct.unpack(">HH", answer[2:4] + answer[6:8])
        return code & 15, [socket.inet_ntoa(answer[-4:])] if count else []

    def look_up(self, name):
        code, addresses = self.ask(name)
        assert code == 0 and addresses, (name, code)
        return addresses[0]

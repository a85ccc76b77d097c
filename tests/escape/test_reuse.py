"""What a run leaves behind for the next one that gets its network namespace or its control groups: nothing. Each row of LEFT
is a program that tries to leave something, and what the runs behind it look for; a neighbour's runs go on meanwhile, and
it is tried with a slot's groups, with a pool and with nothing parked."""

import concurrent.futures
import json

import pytest

from glovebox_server import Server
from test_escapes import HERE
from test_session_escapes import Session

LOOKS = 3
MIB = 1 << 20

# Everything that a program can read of its network namespace. Of sockets: what they are, not their addresses and numbers.
LOOK = r"""
import json, os, socket, sys, time

def read(path):
    try:
        return open(path).read()
    except OSError as error:
        return type(error).__name__

seen = {}
for folder, _, names in os.walk("/proc/self/net"):
    for name in names:
        if name == "softnet_stat":  # each processor's, for the whole host
            continue
        text = read(f"{folder}/{name}")
        lines = text.splitlines()
        if name == "unix":
            lines = sorted(" ".join([*line.split()[2:6], *line.split()[7:]]) for line in lines[1:])
        elif name == "netlink":
            lines = sorted(" ".join(line.split()[1:2] + line.split()[3:4]) for line in lines[1:])
        elif name == "protocols":
            lines = [" ".join(line.split()[:1] + line.split()[2:3]) for line in lines]
        elif name.startswith("sockstat"):
            lines = [line for line in lines if "mem" not in line]
        seen[f"{folder}/{name}"] = lines
names = []
for name in ("left", "queued", "flying", "cycle", "daemon", *(f"{number:05x}" for number in range(4))):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        peer = socket.socket(socket.AF_UNIX, kind)
        try:
            peer.connect("\0" + name)
            names.append(name)
        except OSError:
            pass
        try:
            peer.bind("\0" + name)  # a name that is held is told so
        except OSError as error:
            names.append(f"{name}: {error}")
        peer.close()
routes = []
try:
    for _ in range(30):
        routes.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
except OSError as error:
    names.append(f"netlink: {error}")
children = []
try:
    for _ in range(20 if sys.argv[1:] else 0):
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
        children.append(pid)
except OSError as error:
    names.append(f"fork: {error}")
for pid in children:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
print(json.dumps({"net": os.readlink("/proc/self/ns/net"), "seen": seen, "names": names,
                  "interfaces": [list(each) for each in socket.if_nameindex()]}))
"""

SOCKETS = "import array, ctypes, os, socket, struct, sys, time\n"
DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import signal
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        time.sleep(60)
    os._exit(0)
"""
LISTENER = """
left = socket.socket(socket.AF_UNIX)
left.bind("\\0left")
left.listen(8)
"""

# name: (program, limits). What follows must look as if there had been nobody.
LEFT = {
    "an abstract name": (SOCKETS + LISTENER, {}),
    "an abstract name in a daemon": (SOCKETS + LISTENER + DAEMON, {}),
    "connections that nobody accepted": (SOCKETS + LISTENER + """
peers = [socket.socket(socket.AF_UNIX) for _ in range(8)]
for peer in peers:
    peer.connect("\\0left")
    peer.send(b"x" * 4096)
""" + DAEMON, {}),
    "datagrams that nobody read": (SOCKETS + """
box = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
box.bind("\\0queued")
peer = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for _ in range(5):
    peer.sendto(b"x" * 1000, "\\0queued")
""", {}),
    "a listener in flight": (SOCKETS + LISTENER + """
one, two = socket.socketpair()
socket.send_fds(one, [b"x"], [left.fileno()] * 10)
left.close()
one.close()
""" + DAEMON, {}),
    "sockets that fly in each other": (SOCKETS + """
for number in range(50):
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    if number == 0:
        one.bind("\\0cycle")
    socket.send_fds(one, [b"x"], [one.fileno(), two.fileno()])
    socket.send_fds(two, [b"x"], [one.fileno(), two.fileno()])
    one.close()
    two.close()
""", {}),
    "a cycle with a listener and its connections": (SOCKETS + """
left = socket.socket(socket.AF_UNIX)
left.bind("\\0flying")
left.listen(8)
peers = [socket.socket(socket.AF_UNIX) for _ in range(4)]
for peer in peers:
    peer.connect("\\0flying")
    socket.send_fds(peer, [b"x"], [left.fileno(), peer.fileno()])
""", {}),
    "the namespace itself, in flight": (SOCKETS + """
one, two = socket.socketpair()
socket.send_fds(one, [b"x"], [os.open("/proc/self/ns/net", os.O_RDONLY), os.open("/proc/self/net/unix", os.O_RDONLY)])
socket.send_fds(two, [b"x"], [one.fileno(), two.fileno()])
socket.send_fds(one, [b"x"], [one.fileno(), two.fileno()])
""", {}),
    "names that the kernel chose": (SOCKETS + """
held = []
for _ in range(900):
    held.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    held[-1].bind("")
""", {}),
    "netlink sockets that listen": (SOCKETS + """
held = []
for _ in range(30):
    held.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
    held[-1].bind((0, 0xffffffff))
""" + DAEMON, {}),
    "answers of netlink that nobody read": (SOCKETS + """
held = []
for _ in range(20):
    held.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
    for kind in (18, 22, 26, 30, 34):
        held[-1].send(struct.pack("IHHIIB3x", 20, kind, 0x301, 1, 0, 0))
os.kill(os.getpid(), 9)
""", {}),
    "an interface that is up, addresses, routes, rules": (SOCKETS + """
peer = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
up = struct.pack("BxHiII", 0, 0, 1, 1, 1)
address = struct.pack("BBBBI", 2, 8, 0, 0, 1) + struct.pack("HH4B", 8, 2, 10, 9, 8, 7)
route = struct.pack("8BI", 2, 8, 0, 0, 254, 4, 253, 1, 0) + struct.pack("HH4B", 8, 1, 10, 0, 0, 0) + struct.pack("HHI", 8, 4, 1)
rule = struct.pack("8BI", 2, 0, 0, 0, 100, 0, 0, 1, 0)
neighbour = struct.pack("BxxxiHBB", 2, 1, 128, 0, 0) + struct.pack("HH4B", 8, 1, 10, 9, 8, 6)
nsid = struct.pack("B3x", 0) + struct.pack("HHi", 8, 1, 77) + struct.pack("HHI", 8, 2, os.getpid())
for kind, body in ((16, up), (20, address), (24, route), (32, rule), (28, neighbour), (88, nsid)):
    peer.send(struct.pack("IHHII", 16 + len(body), kind, 0x605, 1, 0) + body)
    print(kind, struct.unpack_from("i", peer.recv(8192), 16)[0])
for path in ("/proc/sys/net/unix/max_dgram_qlen", "/proc/sys/net/core/somaxconn"):
    try:
        open(path, "w").write("1")
    except OSError as error:
        print(error)
""", {}),
    "timers": (SOCKETS + """
import signal
for number in range(200):
    ctypes.CDLL(None).timerfd_create(1, 0)
signal.setitimer(signal.ITIMER_REAL, 0.5, 0.01)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.alarm(1)
""" + DAEMON, {}),
    "processes up to the limit": (SOCKETS + """
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
except OSError:
    pass
""", {"processes": 24}),
    "inotify instances up to the limit": (SOCKETS + """
libc = ctypes.CDLL(None)
while libc.inotify_init1(0) >= 0:
    pass
""" + DAEMON, {}),
    "files in memory": (SOCKETS + """
open("/dev/shm/left", "wb").write(b"x" * (40 << 20))
fd = os.memfd_create("left")
os.write(fd, b"x" * (20 << 20))
one, two = socket.socketpair()
socket.send_fds(one, [b"x"], [fd, one.fileno(), two.fileno()])
""", {}),
    "memory up to the limit": ("kept = []\nwhile True:\n    kept.append(b'x' * (1 << 20))\n", {"memory_bytes": 64 * MIB}),
    "memory of many that were killed for it": (SOCKETS + """
for _ in range(8):
    if os.fork() == 0:
        kept = []
        while True:
            kept.append(b"x" * (1 << 20))
while True:
    try:
        os.wait()
    except OSError:
        break
""", {"memory_bytes": 64 * MIB}),
    "processor time": ("import time\nend = time.process_time() + 0.6\nwhile time.process_time() < end:\n    pass\n", {}),
    "a share of a processor, used up": ("import time\nend = time.process_time() + 0.15\nwhile time.process_time() < end:\n    pass\n",
                                        {"cpus": 0.1}),
    "low limits": ("print(1)", {"memory_bytes": 16 * MIB, "processes": 8}),
    "high limits": ("print(1)", {"memory_bytes": 512 * MIB, "disk_bytes": 512 * MIB}),
}


@pytest.fixture(scope="module", params=["root", "user"])
def server(request, tmp_path_factory):
    with Server(tmp_path_factory.mktemp(f"reuse-{request.param}"), request.param, HERE / "policies") as running:
        running.namespaces = {}
        yield running


def look(server, *args):
    """What a run sees, and its result. Its namespace is remembered: how often each was had."""
    result = server.run(code=LOOK, args=args)
    assert result["status"] == "ok", (result["error"], result["stderr"][-500:], result["limit"])
    seen = json.loads(result["stdout"])
    net = seen.pop("net")
    server.namespaces[net] = server.namespaces.get(net, 0) + 1
    return seen, result


@pytest.fixture(scope="module")
def fresh(server):
    """What is the same in each of the first runs, whose namespaces and groups nobody had before."""
    first, *others = [look(server)[0] for _ in range(4)]
    assert not first["names"] and first["interfaces"] == [[1, "lo"]], first
    for other in others:
        first["seen"] = {path: lines for path, lines in first["seen"].items() if other["seen"].get(path) == lines}
    assert {"/proc/self/net/unix", "/proc/self/net/netlink", "/proc/self/net/dev", "/proc/self/net/snmp",
            "/proc/self/net/sockstat"} <= set(first["seen"]), first["seen"].keys()
    return first


def differences(fresh, seen):
    told = [f"{path}: {fresh['seen'][path]} != {seen['seen'].get(path)}" for path in fresh["seen"]
            if seen["seen"].get(path) != fresh["seen"][path]]
    return told + seen["names"] + [each for each in seen["interfaces"] if each not in fresh["interfaces"]]


@pytest.mark.parametrize("name", LEFT)
def test_next_run_finds_nothing(server, fresh, name):
    program, limits = LEFT[name]
    left = server.run(code=program, limits=limits)
    assert left["fault"] in (None, "code", "limit"), left["error"]
    for _ in range(LOOKS):
        seen, result = look(server, *["forks"][:"up to the limit" in name])
        assert not differences(fresh, seen)
        usage = result["usage"]
        assert not result["limit_hits"] and result["limit"] is None
        assert usage["cpu_ms"] < 500 and usage["memory_peak_bytes"] < 48 * MIB, usage
        assert 0 < usage["processes_peak"] <= 30, usage


@pytest.mark.parametrize("first,second", [(512 * MIB, 32 * MIB), (32 * MIB, 256 * MIB)], ids=["lower", "higher"])
def test_limits_are_those_of_this_run(server, first, second):
    """After runs with other limits: each has all of its own memory, and no more."""
    if "cgroup_memory" in server.degraded:
        pytest.skip("no control group bounds memory here")
    for _ in range(9):
        assert server.run(code="print(1)", limits={"memory_bytes": first})["status"] == "ok"
    for _ in range(4):
        has = server.run(code=f"kept = b'x' * {second - 14 * MIB}\nprint(len(kept))", limits={"memory_bytes": second})
        assert has["status"] == "ok", (has["limit"], has["usage"])
        more = server.run(code=f"kept = b'x' * {second + MIB}\nprint(len(kept))", limits={"memory_bytes": second})
        assert more["limit"] and more["limit"]["name"] == "memory", more["usage"]


def test_processes_are_those_of_this_run(server):
    if "cgroup_pids" in server.degraded:
        pytest.skip("no control group counts processes here")
    many = "import os, time\nmade = 0\ntry:\n    for _ in range(40):\n        if os.fork() == 0:\n            time.sleep(60)\n        made += 1\nexcept OSError:\n    pass\nprint(made)"
    for wanted, most in ((60, 40), (10, 10), (60, 40), (6, 6)):
        for _ in range(3):
            made = int(server.run(code=many, limits={"processes": wanted})["stdout"])
            assert made == 40 if most == 40 else made < most, (wanted, made)


def test_the_slot_of_a_paused_session_is_not_paused_afterwards(server, fresh):
    for _ in range(3):
        session = Session(server)
        session.run("kept = 1")
        session.ask("POST", f"{session.place}/pause", {})
        session.end()
        for _ in range(LOOKS):
            assert not differences(fresh, look(server)[0])


def test_beside_others(server, fresh):
    """The same while three other clients leave things, too."""
    programs = [LEFT[name] for name in ("a cycle with a listener and its connections", "an abstract name in a daemon",
                                        "netlink sockets that listen", "files in memory", "memory up to the limit")]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        leaving = [pool.submit(server.run, code=program, limits=limits) for program, limits in programs * 2]
        for _ in range(6):
            assert not differences(fresh, look(server)[0])
        for run in leaving:
            assert run.result()["fault"] in (None, "code", "limit")


def test_namespaces_were_used_again(server):
    """Else the tests above have looked at nothing."""
    for _ in range(20):
        look(server)
    assert max(server.namespaces.values()) >= 3, server.namespaces

"""Speaks to glovebox-spawner and glovebox-init as gloveboxd does (src/contract), so that tests can look at a sandbox
from outside, down to what the kernel itself says of its processes."""

import array
import contextlib
import fcntl
import functools
import os
import pathlib
import re
import socket
import struct
import subprocess
import time

from zygote_rig import enum_of

BUILD, RELEASE, TEMPLATE, IDLE, USUAL = 32, 33, 37, 38, 39
HELLO, BUILT, RELEASED = 1, 2, 3
KINDS = enum_of("agent.h", "agent_kind")
AGENT_START, AGENT_DONE = KINDS["AGENT_START"], KINDS["AGENT_DONE"]
AGENT_HELLO, AGENT_STARTED = KINDS["AGENT_HELLO"], KINDS["AGENT_STARTED"]
START_MAIN = 1
ERROR = struct.Struct("<ii232s")
MIB = 1 << 20


class Refused(Exception):
    """The spawner answered with an error; the text is what gloveboxd would be told."""


class Gone(Exception):
    """The spawner or init is not there any more, or says nothing."""


def v1_or_v2_groups(name):
    """--group arguments for this machine, with a folder of the test's own."""
    places = []
    for line in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields, _, rest = line.partition(" - ")
        folder, kind = fields.split()[4], rest.split()
        if kind[0] == "cgroup2":
            if "memory" in pathlib.Path(folder, "cgroup.controllers").read_text(encoding="utf-8").split():
                places.append(("unified", f"{folder}/{name}"))
        elif kind[0] == "cgroup":
            places += [(controller, f"{folder}/{name}") for controller in kind[2].split(",")
                       if controller in ("memory", "pids", "cpu", "cpuacct", "freezer")]
    return places


class Spawner:
    """One glovebox-spawner, perhaps under a wrapper that makes something fail."""

    def __init__(self, build, template, work, wrapper=(), group_name="glovebox-test"):
        self.groups = v1_or_v2_groups(group_name)
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.errors = open(work / "spawner.err", "w+b")
        command = [*wrapper, f"{build}/glovebox-spawner", "--daemon", str(theirs.fileno()),
                   "--init", f"{build}/glovebox-init",
                   "--filter", f"{build}/seccomp/default.bpf", "--filter", f"{build}/seccomp/loopback.bpf",
                   "--slots-file", f"{work}/slots", "--slots", "4", "--templates", str(template.parent.parent)]
        for kind, path in self.groups:
            command += ["--group", f"{kind}={path}"]
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self.errors)
        theirs.close()
        self.name_template(template.parent)

    def name_template(self, folder):
        """Template 0, without zygotes."""
        directory, modules = os.open(folder, os.O_RDONLY | os.O_DIRECTORY), os.memfd_create("modules", os.MFD_ALLOW_SEALING)
        try:
            fcntl.fcntl(modules, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW)
            socket.send_fds(self.socket, [struct.pack("<III", TEMPLATE, 0, 0)], [directory, modules])
        except ConnectionError:
            pass  # it ended at once: what is asked of it next tells why
        finally:
            os.close(directory)
            os.close(modules)

    def said(self):
        """What it wrote on stderr, so far."""
        self.errors.seek(0)
        return self.errors.read().decode("utf-8", "replace").strip()

    def receive(self, seconds=15):
        self.socket.settimeout(seconds)
        descriptors = array.array("i")
        try:
            data, control, _, _ = self.socket.recvmsg(2048, socket.CMSG_SPACE(24 * 4), socket.MSG_CMSG_CLOEXEC)
        except socket.timeout as silent:
            raise Gone("the spawner says nothing") from silent
        except ConnectionError as closed:
            raise Gone("the spawner closed the socket") from closed
        for level, kind, content in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(content[:len(content) // 4 * 4])
        if not data:
            raise Gone("the spawner closed the socket")
        return struct.unpack_from("<I", data)[0], data[4:], list(descriptors)

    def hello(self):
        kind, body, _ = self.receive()
        assert kind == HELLO, kind
        version, slots, first, groups, walls, swept, _ = struct.unpack("<IIIIQII", body)
        return {"version": version, "slots": slots, "first": first, "walls": walls, "groups": groups, "swept": swept}

    def build(self, **limits):
        asked = {"open_files": 256, "memory": 64 * MIB, "processes": 16, "disk": 16 * MIB, "inodes": 1024,
                 "cpus": 500, "network": 0, "tenant": 0, **limits}
        body = struct.pack("<Q6I7Q24x", 7, 0, asked["network"], 0, 0, asked["tenant"], asked["open_files"],
                           asked["memory"], asked["processes"],
                           asked["disk"], asked["inodes"], asked["cpus"], 0, 0)
        try:
            self.socket.send(struct.pack("<I", BUILD) + body)
        except ConnectionError as closed:
            raise Gone("the spawner closed the socket") from closed
        kind, body, descriptors = self.receive()
        assert kind == BUILT, kind
        request, slot, generation, walls, degraded, groups, _ = struct.unpack_from("<QIIQQII", body)
        code, _, text = ERROR.unpack_from(body, 40)
        if code != 0:
            for descriptor in descriptors:
                os.close(descriptor)
            raise Refused(text.split(b"\0")[0].decode("utf-8", "replace"))
        assert request == 7
        assert len(descriptors) == 2 + groups.bit_count(), "SPAWN_BUILT came without its descriptors"
        return Sandbox(slot, generation, walls, degraded, groups, descriptors)

    def schedule(self, sandbox, is_idle):
        self.socket.send(struct.pack("<III", IDLE if is_idle else USUAL, sandbox.slot, sandbox.generation))

    def release(self, sandbox):
        try:
            self.socket.send(struct.pack("<III", RELEASE, sandbox.slot, sandbox.generation))
        except ConnectionError as closed:
            raise Gone("the spawner closed the socket") from closed
        while True:
            kind, body, _ = self.receive()
            if kind == RELEASED:
                return struct.unpack("<IIII", body)[2]

    def close(self, seconds=15):
        """Hangs up, as gloveboxd's death would, and gives the exit status."""
        self.socket.close()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        finally:
            self.errors.close()

    def leftovers(self, before=()):
        """Everything of this spawner that is still there: groups of sandboxes, and processes of ours that were not
        there `before`."""
        left = []
        for _, path in self.groups:
            with contextlib.suppress(FileNotFoundError):
                left += [str(item) for item in pathlib.Path(path).iterdir() if item.is_dir()]
        return left + [f"process {pid} {name}" for pid, name in our_processes()
                       if (pid, name) not in before and name not in NEVER_OURS and self.may_own(pid)]

    def may_own(self, pid):
        """Others may be testing here at the same time: theirs sit in groups of their own, and what holds them lives."""
        with contextlib.suppress(OSError):
            groups = pathlib.Path(f"/proc/{pid}/cgroup").read_text()
            if "/glovebox" in groups and not any(f"/{path.rsplit('/', 1)[-1]}/" in groups for _, path in self.groups):
                return False
            above = ancestors(pid)
            return self.process.pid in above or above[-1] == reaper()  # its spawner has ended without it
        return False

    def forget_groups(self):
        for _, path in self.groups:
            leaves = [*pathlib.Path(path).glob("tenant-*/*/"), *sorted(pathlib.Path(path).glob("*/"), reverse=True)]
            for item in [*leaves, pathlib.Path(path)]:
                with contextlib.suppress(OSError):
                    item.rmdir()


class Sandbox:
    def __init__(self, slot, generation, walls, degraded, groups, descriptors):
        self.slot, self.generation, self.walls, self.degraded = slot, generation, walls, degraded
        self.groups = groups
        self.inside = socket.socket(fileno=descriptors[0])
        self.pidfd, self.leaves = descriptors[1], descriptors[2:]
        self.pid = int(re.search(r"^Pid:\s+(-?\d+)", pathlib.Path(f"/proc/self/fdinfo/{self.pidfd}").read_text(),
                                 re.MULTILINE).group(1))
        if self.pid <= 0:
            raise Gone("init ended as soon as it was handed over")

    def close(self):
        self.inside.close()
        for descriptor in [self.pidfd, *self.leaves]:
            os.close(descriptor)

    def read_frame(self, seconds=15):
        def exactly(count):
            data = b""
            while len(data) < count:
                piece = self.inside.recv(count - len(data))
                if not piece:
                    raise Gone("init closed its stream")
                data += piece
            return data

        self.inside.settimeout(seconds)
        try:
            size, kind, stream, number, _ = struct.unpack("<IHHII", exactly(16))
            return kind, stream, number, exactly(size)
        except socket.timeout as silent:
            raise Gone("init says nothing") from silent
        except ConnectionError as closed:
            raise Gone("init closed its stream") from closed

    def start(self, *command, wait_for="230"):
        """Starts a program as gloveboxd would, and waits until it sits in this system call (230: it sleeps). Gives its
        pid on the host."""
        strings = ["/workspace", *command, "PATH=/usr/bin", "HOME=/home/user"]
        payload = struct.pack("<IHHHHI", START_MAIN, len(command), 2, 0, 0, 0)
        payload += b"".join(text.encode() + b"\0" for text in strings)
        try:
            self.inside.sendall(struct.pack("<IHHII", len(payload), AGENT_START, 0, 1, 0) + payload)
        except ConnectionError as closed:
            raise Gone("init closed its stream") from closed
        while True:
            kind, _, _, body = self.read_frame()
            if kind == AGENT_STARTED:
                break
            if kind == AGENT_DONE and struct.unpack_from("<i", body)[0] != 0:
                raise Refused(body[8:].decode("utf-8", "replace"))
        end = time.monotonic() + 5
        while time.monotonic() < end:
            children = self.children()
            if not children and not self.children():  # it was there: init said so
                break
            with contextlib.suppress(OSError):
                for child in children:
                    call = pathlib.Path(f"/proc/{child}/syscall").read_text().split()[0]
                    if os.readlink(f"/proc/{child}/exe").endswith(command[0].split("/")[-1]) and call == wait_for:
                        return int(child)
            time.sleep(0.005)
        raise Gone("the program did not stay")

    def children(self):
        """The processes that init has started and not yet reaped; none either once init has ended."""
        try:
            return pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        except OSError:
            return []


# Of the whole service; a spawner that is tested alone starts none of them.
NEVER_OURS = ("gloveboxd", "glovebox-egress", "glovebox-notify")


def ancestors(pid):
    """The process and those above it, up to the first that is none of glovebox's."""
    found = [pid]
    while pid > 1:
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
        found.append(pid)
        if not pathlib.Path(f"/proc/{pid}/comm").read_text().startswith(("glovebox", "memfd:glovebox", "fail_call")):
            break
    return found


@functools.cache
def reaper():
    """Who is given children whose parent has ended."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        parent = os.getpid()
        if os.fork() == 0:
            while os.getppid() == parent:
                time.sleep(0.001)
            os.write(write_end, str(os.getppid()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write_end)
    with os.fdopen(read_end) as file:
        return int(file.read())


STATUS_HEAD = re.compile(r"Name:\t(.*)\n(?:.*\n)*?State:\t(\S)(?:.*\n)*?Uid:" + r"\t(\d+)" * 4)


def our_processes():
    """Processes of glovebox, by name or by an id of its block."""
    found = []
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb", buffering=0) as file:
            name, state, *ids = STATUS_HEAD.match(file.read(4096).decode("utf-8", "replace")).groups()
            ours = name in ("glovebox-spawne", "gloveboxd") or \
                any(0x70000000 <= int(number) <= 0x70010002 for number in ids)
            if ours and state not in "ZX":
                found.append((int(pid), name))
    return found


STATUS = re.compile(r"^(Uid|Gid|Groups|Cap\w+|NoNewPrivs|Seccomp|Seccomp_filters):[ \t]*(.*)$", re.MULTILINE)


def fingerprint(pid, slot):
    """What the kernel itself says of the walls around a process: ids, capabilities, filters, namespaces, mounts,
    limits, groups. Two sandboxes that are built alike have equal fingerprints: the slot's own id is called OWN."""
    own = str(0x70000400 + slot)
    folder = pathlib.Path(f"/proc/{pid}")
    status = dict(STATUS.findall((folder / "status").read_text()))
    apart = [name for name in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
             if os.readlink(folder / "ns" / name) != os.readlink(f"/proc/self/ns/{name}")]
    mounts = []
    for line in (folder / "mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        mounts.append((fields.split()[4], fields.split()[5], kind, options.replace(own, "OWN") if kind == "tmpfs" else ""))
    groups = [re.sub(r"/tenant-\d+-", "/tenant-FIRST-", re.sub(r"^\d+:", "", line)) for line in (folder / "cgroup").read_text().splitlines()
              if "glovebox" in line]
    return {
        **{key: value.replace(own, "OWN") for key, value in status.items()},
        "namespaces of its own": apart,
        "mounts": sorted(mounts),
        "limits": (folder / "limits").read_text(),
        "groups": sorted(re.sub(r"/(holders-)?\d+$", r"/\1SLOT", line) for line in groups),
        "oom": int((folder / "oom_score_adj").read_text()) > 0,
        "descriptors": len(os.listdir(folder / "fd")),
        "environment": (folder / "environ").read_bytes(),
    }


def group_limits(spawner, slot):
    """The limits as they stand in the slot's control groups."""
    names = ("memory.max", "memory.limit_in_bytes", "memory.swap.max", "pids.max", "cpu.max", "cpu.cfs_quota_us")
    found = {}
    for kind, path in spawner.groups:
        for name in names:
            for leaf in (pathlib.Path(path, str(slot)), *pathlib.Path(path).glob(f"tenant-*/{slot}")):
                with contextlib.suppress(OSError):
                    found[f"{kind}/{name}"] = (leaf / name).read_text().strip()
    return found

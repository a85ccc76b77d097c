"""Stands in for spawner, holder and init, so that the zygote can be tried alone.

`python3 THIS-FILE holder` is the other half: it is exec'd inside the mapped user namespace (the ptrace
check behind setns(pidfd) wants that) and clones inits or starts zygotes on command."""

import array
import ctypes
import errno
import fcntl
import json
import os
import re
import signal
import socket
import struct
import sys
import time
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(globals().get("__file__", "/")))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src")
HOST_ID_BASE = 0x70000000
SANDBOX_IDS = 61100  # above those of all slots: sandboxes of a daemon may run beside this test
AGENT_ID = 1000
NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
RDONLY, NOSUID, NODEV, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
FRAME = struct.Struct("<IHHII")
EXECUTE = struct.Struct("<IIHHI")
ERROR = struct.Struct("<ii232s")
ALLOW_ALL = struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000)

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def mount(kind, target, flags=0, options="", source=None):
    check(libc.mount((source or kind or "none").encode(), target.encode(),
                     kind.encode() if kind else None, ctypes.c_ulong(flags),
                     options.encode() or None), f"mount {target}")


def clone(flags):
    sys.stdout.flush()
    return check(libc.syscall(ctypes.c_long(56), ctypes.c_ulong(flags | signal.SIGCHLD), None, None, None,
                              None), "clone")


def enum_of(header, name):
    """The values of `enum name` in a contract header: the tests use the numbers that C uses."""
    text = open(os.path.join(SOURCE, "contract", header), encoding="utf-8").read()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    values, number = {}, 0
    for row in re.search(r"enum %s \{(.*?)\}" % name, text, re.S)[1].split(","):
        if row.strip():
            key, _, value = row.strip().partition("=")
            number = int(value, 0) if value else number
            values[key.strip()] = number
            number += 1
    return values


# --- inside the user namespace ------------------------------------------------------------------

def send(peer, body, fds=()):
    peer.sendmsg([body], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])


def receive(peer, most=70000):
    body, rights, _flags, _ = peer.recvmsg(most, socket.CMSG_SPACE(24 * 4))
    fds = array.array("i")
    for _level, _type, data in rights:
        fds.frombytes(data)
    return body, list(fds)


def frames_of(message):
    """A value and the end of its cell come in one message."""
    while message:
        size, kind, *_ = FRAME.unpack_from(message)
        yield kind, message[FRAME.size:FRAME.size + size]
        message = message[FRAME.size + size:]


def hold():
    peer = socket.socket(fileno=3)
    libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: with the test ends all that it started
    while True:
        body, fds = receive(peer)
        if not body:
            return
        order = json.loads(body)
        if order["do"] == "init":
            start_init(peer, order)
        else:
            start_zygote(peer, order, fds)
        for fd in fds:
            os.close(fd)


def start_zygote(peer, order, fds):
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(fds[0], 3)
        os.set_inheritable(3, True)
        os.closerange(4, 100)
        os.execve("/usr/bin/python3", ["/usr/bin/python3", "-s", "/usr/lib/glovebox/zygote.py",
                                       *order["modules"]], order["environment"])
    send(peer, json.dumps({"pid": pid}).encode())


def start_init(peer, order):
    gate, opener = os.pipe()
    status, reporter = os.pipe()
    pid = clone(NEWUSER | NEWNS | NEWPID | NEWIPC | NEWUTS | NEWNET)
    if pid == 0:
        os.close(opener)
        os.read(gate, 1)
        try:
            be_init(reporter, order)
        except BaseException as error:
            os.write(reporter, json.dumps({"failed": repr(error)}).encode() + b"\n")
        os._exit(1)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
            file.write(f"{AGENT_ID} {order['id']} 1")
    os.write(opener, b"g")
    pidfd = os.pidfd_open(pid)
    send(peer, b"{}", [pidfd, status])
    for fd in (gate, opener, status, reporter, pidfd):
        os.close(fd)


def be_init(reporter, order):
    os.setresgid(AGENT_ID, AGENT_ID, AGENT_ID)
    os.setresuid(AGENT_ID, AGENT_ID, AGENT_ID)
    mount("tmpfs", "/run", NOSUID | NODEV, "mode=0700,size=64m")
    for place in ("/workspace", "/tmp", "/home/user", "/dev/shm"):
        if os.path.isdir(place):
            mount("tmpfs", place, NOSUID | NODEV, f"mode=0755,size={order.get('disk', 1 << 26)}")
    mount("proc", "/proc", NOSUID | NODEV, "subset=pid")
    os.closerange(3, reporter)
    os.closerange(reporter + 1, 100)
    os.write(reporter, b'{"ready":1}\n')
    while True:
        try:
            pid, status = os.wait()
            os.write(reporter, json.dumps({"pid": pid, "status": status}).encode() + b"\n")
        except ChildProcessError:
            time.sleep(0.002)
        except BrokenPipeError:
            os._exit(0)


# --- outside -----------------------------------------------------------------------------------

class Interpreter:
    """One forked interpreter in its sandbox, seen as init sees it."""

    def __init__(self, rig, pidfd, status, fds, took):
        self.rig, self.pidfd, self.status, self.took = rig, pidfd, status, took
        self.stdin, self.stdout, self.stderr, self.control = fds
        self.listener = None
        self.number = 0
        body, got = receive(self.control)
        assert body, "the interpreter died before it was ready"
        _size, kind, _, _, _ = FRAME.unpack_from(body)
        assert kind == rig.inside["AGENT_INTERPRETER_READY"]
        self.pid, self.os_error = struct.unpack_from("<Ii", body, FRAME.size)
        self.failure = body[FRAME.size + 8:].decode()
        if got:
            self.listener = got[0]

    def host_pid(self):
        """Its process id out here: the only child of the init that this pidfd stands for."""
        info = Path(f"/proc/self/fdinfo/{self.pidfd}").read_text(encoding="ascii")
        init = int([line.split()[1] for line in info.splitlines() if line.startswith("Pid:")][0])
        return int(Path(f"/proc/{init}/task/{init}/children").read_text(encoding="ascii").split()[0])

    def execute(self, code="", mode="SCRIPT", path=None, arguments=(), variables=None, folder="/workspace",
                flags=0, timeout=20, stdin=b"", prepare=True):
        """Sends the code and gathers all that comes back until EXECUTED."""
        self.number += 1
        if path is None:
            path = "/run/main.py" if mode == "SCRIPT" else ""
        if mode == "SCRIPT" and code:
            flags |= self.rig.execute_write
        variables = self.rig.environment if variables is None else variables
        code = code.encode() if isinstance(code, str) else code
        arguments = [path, *arguments]
        texts = [folder, path, *arguments, *(f"{k}={v}" for k, v in variables.items())]
        payload = EXECUTE.pack({"SCRIPT": 1, "CELL": 2}[mode], flags, len(arguments), len(variables),
                               len(code))
        payload += b"".join(os.fsencode(text) + b"\0" for text in texts) + code
        began = time.perf_counter()
        if stdin is not None:
            os.write(self.stdin, stdin)
            if mode == "SCRIPT":
                os.close(self.stdin)
                self.stdin = -1
        self.control.sendall(FRAME.pack(len(payload), self.rig.inside["AGENT_EXECUTE"], 0, self.number, 0)
                             + payload)
        return self.gather(began, timeout)

    def gather(self, began, timeout):
        import select

        outcome = {"stdout": b"", "stderr": b"", "results": [], "error": None, "executed": None}
        pieces = {}
        open_outputs = {self.stdout: "stdout", self.stderr: "stderr"}
        control = [self.control, self.listener]
        while time.perf_counter() < began + timeout and (control or open_outputs):
            ready, _, _ = select.select([*open_outputs, *control], [], [], 0.5)
            for fd in ready:
                if fd in open_outputs:
                    got = os.read(fd, 65536)
                    outcome[open_outputs[fd]] += got
                    if not got:
                        del open_outputs[fd]
            if self.listener in ready:
                self.answer_denial()
            if not control or self.control not in ready or any(fd in open_outputs for fd in ready):
                continue
            body, _ = receive(self.control)
            if not body:
                control = []
                continue
            for kind, payload in frames_of(body):
                self.take(outcome, pieces, kind, payload)
            if outcome["executed"]:
                outcome["took_ms"] = (time.perf_counter() - began) * 1000
                break
        self.drain(open_outputs, outcome)
        return outcome

    def take(self, outcome, pieces, kind, body):
        if kind == self.rig.inside["AGENT_RESULT"]:
            what, last, _ = struct.unpack_from("<HHI", body)
            pieces[what] = pieces.get(what, b"") + body[8:]
            if last:
                shown = json.loads(pieces.pop(what))
                if what == 3:
                    outcome["error"] = shown
                else:
                    outcome["results"].append({"main": what == 1, **shown})
        elif kind == self.rig.inside["AGENT_EXECUTED"]:
            code, number_of_signal, ends, count = struct.unpack("<iiII", body)
            outcome["executed"] = {"code": code, "signal": number_of_signal, "ends": ends, "count": count}

    def answer_denial(self):
        """A refused call waits for its errno, as init would give it (seccomp_unotify(2))."""
        notice = bytearray(80)
        try:
            fcntl.ioctl(self.listener, 0xC0502100, notice)
            number = struct.unpack_from("<Q", notice)[0]
            fcntl.ioctl(self.listener, 0xC0182101, struct.pack("<QqiI", number, 0, -errno.ENETUNREACH, 0))
        except OSError:
            pass  # the caller has died meanwhile

    @staticmethod
    def drain(open_outputs, outcome):
        for fd, name in open_outputs.items():
            os.set_blocking(fd, False)
            try:
                while got := os.read(fd, 65536):
                    outcome[name] += got
            except BlockingIOError:
                pass
            os.set_blocking(fd, True)

    def wait(self):
        """(exit code or None, signal) as init learned it from the kernel."""
        while True:
            reports = [json.loads(line) for line in os.read(self.status, 4096).splitlines()]
            for status in [report["status"] for report in reports if report["pid"] == self.pid]:
                return (os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else None,
                        os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)

    def close(self):
        signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        self.control.close()
        for fd in (self.pidfd, self.status, self.stdin, self.stdout, self.stderr, self.listener):
            if fd is not None and fd >= 0:
                os.close(fd)


class Rig:
    """A user namespace with one zygote."""

    def __init__(self, root, python, modules=(), filter_code=ALLOW_ALL, settings=None):
        self.inside = enum_of("agent.h", "agent_kind")
        self.zygote_kind = enum_of("zygote.h", "zygote_kind")
        self.execute_write = 1
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/user", "LANG": "C.UTF-8",
                            "TZ": "UTC", "TMPDIR": "/tmp", "PYTHONPATH": "/workspace",
                            "MPLBACKEND": "Agg"}
        self.slot = 0
        self.filter = os.memfd_create("filter")
        os.write(self.filter, filter_code)
        self.holder, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = self.start_holder(root, python, theirs)
        self.spawner, zygote = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        heap = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "PYTHONMALLOC": "malloc"}
        environment = {**(heap if settings is None else settings), "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "Agg",
                       "HOME": "/home/user", "LANG": "C.UTF-8", "TZ": "UTC"}
        send(self.holder, json.dumps({"do": "zygote", "modules": list(modules),
                                      "environment": environment}).encode(), [zygote.fileno()])
        zygote.close()
        self.zygote_pid = json.loads(receive(self.holder)[0])["pid"]
        body, _ = receive(self.spawner)
        assert body, "the zygote died before it was ready"
        _, self.threads, self.warm_us, self.memory = struct.unpack_from("<IIQQ", body, 4)
        code, _, text = ERROR.unpack_from(body, 4 + 24)
        self.failure = text.rstrip(b"\0").decode() if code else None

    def start_holder(self, root, python, theirs):
        gate, opener = os.pipe()
        ready, unshared = os.pipe()
        pid = os.fork()
        if pid:
            os.close(gate)
            os.close(unshared)
            os.read(ready, 1)
            os.close(ready)
            for name in ("uid_map", "gid_map"):
                with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
                    file.write(f"0 {HOST_ID_BASE} 65536")
            os.write(opener, b"g")
            os.close(opener)
            theirs.close()
            return pid
        try:
            os.close(opener)
            script = open(__file__, encoding="utf-8").read()
            files = {name: open(os.path.join(python, name), "rb").read() for name in os.listdir(python)}
            check(libc.unshare(NEWUSER | NEWNS | NEWPID | NEWIPC | NEWUTS | NEWNET), "unshare")
            os.write(unshared, b"u")
            os.read(gate, 1)
            os.setgroups([])
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)
            libc.prctl(1, signal.SIGKILL, 0, 0, 0)
            if os.fork():
                os.close(theirs.fileno())
                os.wait()
                os._exit(0)
            self.enter_root(root, files)
            program = os.memfd_create("holder", 0)
            os.write(program, script.encode())
            for number, fd in ((3, theirs.fileno()), (5, program)):
                os.dup2(fd, 100 + number)
            os.dup2(103, 3)
            os.dup2(105, 5)
            os.set_inheritable(3, True)
            os.set_inheritable(5, True)
            os.closerange(6, 1000)
            os.execve("/usr/bin/python3", ["/usr/bin/python3", "-S", "-E", "/proc/self/fd/5", "holder"], {})
        except BaseException as error:
            print("holder:", repr(error), file=sys.stderr)
        os._exit(1)

    @staticmethod
    def enter_root(root, files):
        mount(None, "/", REC | PRIVATE)
        mount(None, "/mnt", BIND, source=root)
        os.chdir("/mnt")
        mount("tmpfs", "dev", NOSUID, "mode=0755,size=64k")
        for name in ("null", "zero", "full", "random", "urandom"):
            open(f"dev/{name}", "w", encoding="ascii").close()
            mount(None, f"dev/{name}", BIND, source=f"/dev/{name}")
        os.mkdir("dev/shm")
        os.mkdir("dev/pts")
        for name in ("fd", ):
            os.symlink("/proc/self/fd", f"dev/{name}")
        mount("proc", "proc", NOSUID | NODEV)
        mount("tmpfs", "usr/lib/glovebox", NOSUID | NODEV, "mode=0755,size=4m")
        for name, body in files.items():
            with open(f"usr/lib/glovebox/{name}", "wb") as file:
                file.write(body)
            os.chmod(f"usr/lib/glovebox/{name}", 0o555)
        mount(None, "/mnt", REMOUNT | BIND | RDONLY | NOSUID | NODEV)
        check(libc.syscall(ctypes.c_long(155), b".", b"."), "pivot_root")
        check(libc.umount2(b".", 2), "umount")
        os.chdir("/")

    def zygote_pid_outside(self):
        """The zygote's process id as this side sees it: the python3 that runs zygote.py below our holder."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and b"/usr/lib/glovebox/zygote.py" in open(f"/proc/{entry}/cmdline", "rb").read():
                    names = open(f"/proc/{entry}/status", encoding="ascii").read()
                    ids = re.search(r"NSpid:\s+(.*)", names)[1].split()
                    parent = re.search(r"PPid:\s+(\d+)", names)[1]
                    if len(ids) == 2 and int(ids[1]) == self.zygote_pid and self.is_below(parent):
                        found.append(int(entry))
            except (OSError, TypeError):
                pass
        assert len(found) == 1, found
        return found[0]

    def is_below(self, holder):
        status = open(f"/proc/{holder}/status", encoding="ascii").read()
        return re.search(r"PPid:\s+(\d+)", status)[1] == str(self.pid)

    def init(self):
        self.slot += 1
        send(self.holder, json.dumps({"do": "init", "id": SANDBOX_IDS + self.slot}).encode())
        _, (pidfd, status) = receive(self.holder)
        said = json.loads(os.read(status, 4096))
        assert "ready" in said, said
        return pidfd, status

    def fork(self, prime=1, procs=(), open_files=1024, disk_bytes=1 << 26, processes=64, init=None):
        """One ZYGOTE_FORK into a new sandbox; gives the Interpreter once it has said it is ready."""
        pidfd, status = init or self.init()
        stdin, stdin_w = os.pipe()
        stdout_r, stdout = os.pipe()
        stderr_r, stderr = os.pipe()
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        began = time.perf_counter()
        body = struct.pack("<IIIIIIIQQQ", self.zygote_kind["ZYGOTE_FORK"], self.slot, 1, len(procs),
                           open_files, prime, 0, 0, disk_bytes, processes)
        send(self.spawner, body, [pidfd, stdin, stdout, stderr, theirs.fileno(), self.filter, *procs])
        answer, _ = receive(self.spawner)
        took = (time.perf_counter() - began) * 1000
        theirs.close()
        for fd in (stdin, stdout, stderr):
            os.close(fd)
        kind, slot, generation, pid, _, took_us = struct.unpack_from("<IIIiIQ", answer)
        assert (kind, slot, generation) == (self.zygote_kind["ZYGOTE_FORKED"], self.slot, 1)
        code, _, text = ERROR.unpack_from(answer, 28)
        if code:
            raise RuntimeError(text.rstrip(b"\0").decode())
        interpreter = Interpreter(self, pidfd, status, (stdin_w, stdout_r, stderr_r, control), took)
        interpreter.ready_ms = (time.perf_counter() - began) * 1000
        interpreter.took_us = took_us
        assert pid == interpreter.pid
        return interpreter

    def close(self):
        self.spawner.close()
        self.holder.close()
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        os.close(self.filter)


if __name__ == "__main__" and sys.argv[1:] == ["holder"]:
    hold()

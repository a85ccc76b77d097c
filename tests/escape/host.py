"""host.py FOLDER COMMAND... - the host around a daemon of the escape tests: what attempts look for (make_host), and,
run as a program, a host in namespaces of its own for daemons that have a wall disabled.

Such a daemon lets attempts out on purpose. What they reach then is made for them: own mounts (everything read-only but
FOLDER, the state and fresh /tmp, /run, /var/tmp, /dev/shm), own processes, network, IPC and host name. All of it ends
with process 1 of the namespace. Writes FOLDER/host.json once the host is made; ends when COMMAND ends, and passes
SIGTERM on to it."""

import ctypes
import fcntl
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)

MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
SPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000  # CLONE_NEW NS, UTS, IPC, PID, NET
FRESH = {"/tmp": "mode=1777", "/var/tmp": "mode=1777", "/dev/shm": "mode=1777", "/run": "mode=755"}
SLOTS = "/run/glovebox"  # daemons of one machine lock their slots here, in whatever namespaces they are
KERNEL_OWN = ("proc", "cgroup", "cgroup2", "mqueue", "devpts", "securityfs", "bpf", "tracefs", "debugfs")
SECRET = "kept-secret-in-tests"
HOST_PID_FIRST = 20000  # a pid that no process inside a sandbox has by chance


def make_host(folder, state, server_socket):
    """A file, a process, sockets, shared memory: gives their description for attempts, and how each is closed."""
    canary = pathlib.Path(folder, "canary.txt")
    canary.write_text(f"host canary {random.random()}\n", encoding="utf-8")
    name = f"escape-host-{os.getpid()}-{random.randrange(10**6)}"
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0" + name)
    loopback = socket.socket()
    loopback.bind(("127.0.0.1", 0))
    for listener in (abstract, loopback):
        listener.listen(8)
    key = 0x45480000 | random.randrange(65536)
    segment = libc.shmget(key, 4096, 0o1666)
    closers = [abstract.close, loopback.close, lambda: libc.shmctl(segment, 0, None)]
    return {"canary": str(canary), "state": str(state), "socket": str(server_socket), "pid": os.getpid(),
            "port": loopback.getsockname()[1], "abstract": name, "shm_key": key, "secret": SECRET}, closers


def checked(result, what):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(source, target, kind=None, flags=0, data=None):
    words = [word if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    checked(libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), f"mount {target}")


def is_below(path, folder):
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def mounts():
    """(place, kind, flags that a remount must repeat) of every mount: proc_pid_mountinfo(5)."""
    names = {"nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 1024, "nodiratime": 2048, "relatime": 1 << 21}
    for line in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields, _, rest = line.partition(" - ")
        place, options = fields.split()[4:6]
        yield (place.encode().decode("unicode_escape"), rest.split()[0],
               sum(names.get(option, 0) for option in options.split(",")))


def close_mounts(writable, readable):
    """Leaves this mount namespace with nothing of the host that can be written but the paths in `writable`."""
    mount(None, "/", flags=MS_REC | MS_PRIVATE)
    kept = {path: os.open(path, os.O_PATH) for path in [*readable, *writable]}  # the second may lie in the first
    for place, options in FRESH.items():
        mount("tmpfs", place, "tmpfs", data=f"size=256m,{options}")
    for path, descriptor in kept.items():
        if path in writable or any(is_below(path, place) for place in FRESH):
            os.makedirs(path, exist_ok=True)
            mount(f"/proc/self/fd/{descriptor}", path, flags=MS_BIND)
        os.close(descriptor)
    for place, kind, flags in list(mounts()):
        if kind not in KERNEL_OWN and place not in writable and place not in FRESH:
            mount(None, place, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | flags)


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x41))  # SIOCSIFFLAGS: up, running


def be_the_host(folder, command):
    """Process 1 of the namespace: its end is the end of everything in it."""
    mount("proc", "/proc", "proc")
    raise_loopback()
    pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(HOST_PID_FIRST), encoding="ascii")
    told, done = os.pipe()
    host = os.fork()
    if host == 0:
        told_of, _ = make_host(folder, os.environ["GLOVEBOX_STATE"], f"{folder}/glovebox.sock")
        pathlib.Path(folder, "host.part").write_text(json.dumps(told_of), encoding="utf-8")
        os.rename(f"{folder}/host.part", f"{folder}/host.json")
        os.close(told)
        os.close(done)
        while True:
            signal.pause()
    os.close(done)
    os.read(told, 1)  # end of file once the host has closed its end
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as server:
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())
        return server.wait()


def main(folder, command):
    top = str(pathlib.Path(__file__).resolve().parents[2])
    os.makedirs(SLOTS, mode=0o755, exist_ok=True)
    programs = str(pathlib.Path(command[0]).resolve().parent)
    checked(libc.unshare(SPACES), "unshare")
    close_mounts([folder, os.environ["GLOVEBOX_STATE"], SLOTS], [top, programs])
    child = os.fork()
    if child == 0:
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: nothing outlives the tests
        os._exit(be_the_host(folder, command))
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

"""What a hostile package or recipe would try while a template is built. Each attack is a Python function that returns
normally only if it has reached something; whatever refuses it raises. The names of the host that they aim at are in
`host`: a folder with a file `secret`, a port and an abstract socket where somebody listens, a process."""

import ctypes
import fcntl
import glob
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def call(number, *values):
    got = libc.syscall(number, *[ctypes.c_char_p(one) if isinstance(one, bytes) else ctypes.c_long(one) for one in values])
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def refused(what):
    raise PermissionError(what)


def core_pattern(host):
    with open("/proc/sys/kernel/core_pattern", "r+", encoding="utf-8") as file:
        file.write(file.read())


def other_sysctl(host):
    write("/proc/sys/vm/overcommit_memory", "0")


def new_proc(host):
    os.makedirs("/tmp/proc", exist_ok=True)
    call(165, b"proc", b"/tmp/proc", b"proc", 0, b"")


def own_proc_again(host):
    call(165, b"none", b"/proc", b"proc", 32, b"subset=")  # MS_REMOUNT


def device_folder(host):
    write("/dev/x", "")


def sysrq(host):
    write("/proc/sysrq-trigger", "h")


def kernel_log(host):
    os.write(os.open("/dev/kmsg", os.O_WRONLY), b"from a build")


def host_file(host):
    open(os.path.join(host["folder"], "secret"), encoding="utf-8").close()


def host_names(host):
    if not os.path.exists("/etc/machine-id") and os.uname().nodename == "glovebox":
        refused("nothing of this machine")


def walk_up(host):
    os.mkdir("/tmp/up")
    os.chroot("/tmp/up")
    for _ in range(40):
        os.chdir("..")
    os.chroot(".")
    open(host["folder"] + "/secret", encoding="utf-8").close()


def by_handle(host):
    handle = struct.pack("IiQ", 8, 1, 2)
    call(304, os.open("/", os.O_RDONLY), handle, os.O_RDONLY)


def links_of_descriptors(host):
    for entry in glob.glob("/proc/*/fd/*") + glob.glob("/proc/*/cwd") + glob.glob("/proc/*/root"):
        if os.path.exists(os.path.join(entry, host["folder"].lstrip("/"), "secret")):
            return
    refused("none leads there")


def descriptors(host):
    if host["descriptors"] > 3:
        return
    refused("only standard ones")


def variables(host):
    if any(host["word"] in value for value in os.environ.values()):
        return
    refused("no variable of the host")


def other_template(host):
    open(os.path.join(host["state"], "templates/other/root/secret"), "a", encoding="utf-8").close()


def sys_folder(host):
    os.makedirs("/tmp/sys", exist_ok=True)
    call(165, b"sysfs", b"/tmp/sys", b"sysfs", 0, b"")


def cgroups(host):
    os.makedirs("/tmp/group", exist_ok=True)
    call(165, b"cgroup2", b"/tmp/group", b"cgroup2", 0, b"")


def block_device(host):
    os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0))


def memory_device(host):
    os.mknod("/usr/share/mem", 0o20600, os.makedev(1, 1))


def user_namespace(host):
    call(272, 0x10000000)


def namespace_of_another(host):
    call(308, os.open("/proc/1/ns/mnt", os.O_RDONLY), 0)


def new_mount_api(host):
    call(428, -100, b"/", 1)


def trace(host):
    call(101, 16, host["pid"], 0, 0)


def trace_init(host):
    call(101, 16, 1, 0, 0)


def read_memory(host):
    local = struct.pack("QQ", 0, 8)
    call(310, host["pid"], local, 1, local, 1, 0)


def signal_host(host):
    os.kill(host["pid"], 0)


def signal_all(host):
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    seen = [int(one) for one in os.listdir("/proc") if one.isdigit()]
    if len(seen) > 20:
        return
    refused(f"only {seen}")


def loopback(host):
    socket.create_connection(("127.0.0.1", host["port"]), 2).close()


def datagram(host):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", host["port"]))


def raw_packets(host):
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW)


def abstract_socket(host):
    socket.socket(socket.AF_UNIX).connect("\0" + host["socket"])


def netlink(host):
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)


def vsock(host):
    socket.socket(40, socket.SOCK_STREAM)


def keyring(host):
    call(248, b"user", b"probe", b"x", 1, -3)


def keyring_search(host):
    call(250, 10, -3, b"user", b"glovebox-host-key", 0)


def shared_memory(host):
    call(29, host["shm"], 0, 0)


def terminal(host):
    fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x5412, b"x")


def kernel_module(host):
    call(175, b"", 0, b"")


def bpf(host):
    call(321, 0, b"\0" * 72, 72)


def perf(host):
    call(298, b"\0" * 112, 0, -1, -1, 0)


def user_faults(host):
    call(323, 0)


def ring(host):
    call(425, 8, b"\0" * 120)


def clock(host):
    time.clock_settime(time.CLOCK_REALTIME, time.time())


def host_name(host):
    socket.sethostname("taken")


def swap(host):
    call(167, b"/tmp/x", 0)


def reboot(host):
    call(169, 0xfee1dead, 672274793, 0, 0)


def real_time(host):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def raise_limits(host):
    resource.setrlimit(resource.RLIMIT_NPROC, (1 << 20, 1 << 20))


def other_user(host):
    os.setuid(4321)


def fork_bomb(host):
    children = []
    try:
        for _ in range(1200):
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            children.append(child)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)


def large_file(host):
    with open("/usr/share/large", "wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, 9 << 30)
        finally:
            file.truncate(0)


def shared_bomb(host):
    with open("/dev/shm/full", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 80 << 20)


ATTACKS = [descriptors, core_pattern, other_sysctl, new_proc, own_proc_again, device_folder, sysrq, kernel_log, host_file, host_names, walk_up, by_handle,
           links_of_descriptors, variables, other_template, sys_folder, cgroups, block_device, memory_device,
           user_namespace, namespace_of_another, new_mount_api, trace, trace_init, read_memory, signal_host, signal_all,
           loopback, datagram, raw_packets, abstract_socket, netlink, vsock, keyring, keyring_search, shared_memory, terminal,
           kernel_module, bpf, perf, user_faults, ring, clock, host_name, swap, reboot, real_time, raise_limits, other_user,
           fork_bomb, large_file, shared_bomb]

# What succeeds inside and must mean nothing outside: it is looked at when the build is done.
PLANTS = """
import os, subprocess, sys
os.makedirs('/usr/share/planted', exist_ok=True)
for name, mode in (('setuid', 0o4755), ('setgid', 0o2755), ('anyone', 0o777)):
    open('/usr/share/planted/' + name, 'w').write('#!/bin/sh\\n')
    os.chmod('/usr/share/planted/' + name, mode)
os.symlink(HOST['folder'], '/usr/share/planted/link')
os.rename('/var/cache', '/var/cache.old')
os.symlink(HOST['folder'], '/var/cache')
os.rename('/usr/share/glovebox/skel', '/usr/share/glovebox/old')
os.symlink(HOST['folder'], '/usr/share/glovebox/skel')
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv('/usr/bin/sleep', ['sleep', HOST['nap']])
    os._exit(0)
"""


def attempt(attack, host):
    """In a process of its own, which it may spoil."""
    out, end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            attack(host)
            said = "REACHED"
        except BaseException as cause:
            said = f"{type(cause).__name__}: {cause}"
        os.write(end, said.encode())
        os._exit(0)
    os.close(end)
    with os.fdopen(out) as file:
        said = file.read()
    os.waitpid(child, 0)
    return said or "died"


def main():
    host = json.loads(sys.argv[1])
    host["descriptors"] = len(os.listdir("/proc/self/fd")) - 1
    found = {attack.__name__: attempt(attack, host) for attack in ATTACKS}
    os.makedirs(os.path.dirname(sys.argv[2]), exist_ok=True)
    write(sys.argv[2], json.dumps(found))


if __name__ == "__main__":
    main()

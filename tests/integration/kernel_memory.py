"""kernel_memory.py KIND - inside a sandbox: has the kernel hold memory of one kind until something stops it, or until
it holds MOST bytes; says what came of it, waits a moment so that it can be measured from outside, and ends.

Bytes are those of the payload, or the number of objects times what one is at least. Several processes work, since
descriptors are bounded for each process."""

import ctypes
import errno
import fcntl
import os
import resource
import select
import signal
import socket
import struct
import sys
import threading
import time

WORKERS = 4
MIB = 1 << 20
MOST = 192 * MIB // WORKERS # of one worker
BLOCK = b"x" * 65536
libc = ctypes.CDLL(None, use_errno=True)
kept = []


def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_char_p(word) if isinstance(word, bytes) else ctypes.c_long(word)
                                                   for word in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def fill(end):
    """Sends until the buffer is full; gives how much went in."""
    end.setblocking(False)
    held = 0
    try:
        while held < 8 * MIB:
            held += end.send(BLOCK)
    except BlockingIOError:
        pass
    return held


def tcp():
    listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    while True:
        end = socket.create_connection(listener.getsockname())
        kept.extend((end, listener.accept()[0]))
        yield fill(end)


def tcp_that_nobody_accepts():
    """The data waits at connections that no program has taken; the other ends are closed."""
    while True:
        listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        kept.append(listener)
        for _ in range(4000):
            with socket.socket() as end:
                end.settimeout(1)
                try:
                    end.connect(listener.getsockname())
                except TimeoutError:
                    break
                yield fill(end)


def rest_of_udp(end):
    return struct.unpack_from("I", end.getsockopt(socket.SOL_SOCKET, 55, 36))[0] # SO_MEMINFO: bytes received


def udp():
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    while True:
        end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * MIB)
        end.bind(("127.0.0.1", 0))
        kept.append(end)
        for _ in range(64):
            sender.sendto(BLOCK[:60000], end.getsockname())
        yield rest_of_udp(end)


def unix(kind):
    while True:
        end, other = socket.socketpair(socket.AF_UNIX, kind)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * MIB)
        kept.extend((end, other))
        yield fill(end)


def unix_streams():
    return unix(socket.SOCK_STREAM)


def unix_datagrams():
    return unix(socket.SOCK_DGRAM)


def unix_that_nobody_accepts():
    count = 0
    while True:
        count += 1
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"\0held-{os.getpid()}-{count}")
        listener.listen(4096)
        kept.append(listener)
        for _ in range(4000):
            with socket.socket(socket.AF_UNIX) as end:
                end.setblocking(False)
                try:
                    end.connect(listener.getsockname())
                except BlockingIOError:
                    break
                yield fill(end)


def pipes():
    while True:
        ends = os.pipe2(os.O_NONBLOCK)
        kept.append(ends)
        try:
            fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, MIB)
        except PermissionError:
            pass
        held = 0
        try:
            while True:
                held += os.write(ends[1], BLOCK)
        except BlockingIOError:
            yield held


def descriptors_under_way():
    """Pipes that only a message holds that is still to be read."""
    while True:
        end, other = socket.socketpair()
        end.setblocking(False)
        kept.extend((end, other))
        try:
            while True:
                ends = os.pipe2(os.O_NONBLOCK)
                try:
                    held = os.write(ends[1], BLOCK)
                    socket.send_fds(end, [b"x"], ends)
                finally:
                    os.close(ends[0])
                    os.close(ends[1])
                yield held
        except BlockingIOError:
            yield 0


def netlink():
    while True:
        end = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * MIB)
        end.setblocking(False)
        kept.append(end)
        try:
            for _ in range(200): # RTM_GETLINK
                end.send(struct.pack("=IHHIIB15x", 32, 18, 0x301, 1, 0, 0))
                yield 0
        except OSError:
            pass
        yield rest_of_udp(end)


def socket_filters():
    code = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0xffff) * 500)
    program = struct.pack("HxxxxxxP", 500, ctypes.addressof(code))
    while True:
        end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        kept.extend((end, other, code))
        for one in (end, other):
            one.setsockopt(socket.SOL_SOCKET, 26, program) # SO_ATTACH_FILTER
            yield 4000


def epoll_entries():
    watched = [os.eventfd(0) for _ in range(500)]
    kept.append(watched)
    while True:
        poll = select.epoll()
        kept.append(poll)
        for fd in watched:
            poll.register(fd)
            yield 128


def small_descriptors():
    makers = [lambda: os.eventfd(0), lambda: os.memfd_create("x"), lambda: call(283, 1, 0), select.epoll,
              lambda: call(289, -1, b"\0" * 8, 8, 0)] # timerfd_create, signalfd4
    while True:
        for make in makers:
            kept.append(make())
            yield 256


def posix_timers():
    place = ctypes.create_string_buffer(8)
    while True:
        if libc.syscall(222, 0, None, place) < 0:
            raise OSError(ctypes.get_errno(), "timer_create")
        yield 256


def signals():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
    info = ctypes.create_string_buffer(struct.pack("iii", signal.SIGRTMIN, 0, -1) + b"\0" * 116)
    while True:
        if libc.syscall(129, os.getpid(), int(signal.SIGRTMIN), info) < 0:
            raise OSError(ctypes.get_errno(), "rt_sigqueueinfo")
        yield 80


def record_locks():
    file = os.open(f"locks-{os.getpid()}", os.O_RDWR | os.O_CREAT)
    at = 0
    while True:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, at, os.SEEK_SET)
        at += 2
        yield 192


def attributes():
    count = 0
    while True:
        path = f"attributes-{os.getpid()}-{count}"
        os.close(os.open(path, os.O_CREAT))
        count += 1
        for number in range(64):
            os.setxattr(path, f"user.{number}", BLOCK[:60000])
            yield 60000


def many_small_attributes():
    path = f"attributes-{os.getpid()}"
    os.close(os.open(path, os.O_CREAT))
    number = 0
    while True:
        os.setxattr(path, f"user.{number}", b"x")
        number += 1
        yield 64


def page_tables():
    """One page read of each 2 MiB: it is the page of zeros, the table is 4 KiB."""
    size = 1 << 40
    libc.mmap.restype = ctypes.c_void_p
    start = libc.mmap(None, ctypes.c_size_t(size), 1, 0x4022, -1, ctypes.c_long(0))
    if start == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), 15) # no huge pages
    for at in range(start, start + size, 2 * MIB):
        ctypes.c_char.from_address(at).value # pylint: disable=expression-not-assigned
        yield 4096


def mappings():
    libc.mmap.restype = ctypes.c_void_p
    while True:
        for protection in (0, 1):
            if libc.mmap(None, ctypes.c_size_t(4096), protection, 0x22, -1, ctypes.c_long(0)) == ctypes.c_void_p(-1).value:
                raise OSError(ctypes.get_errno(), "mmap")
            yield 176


def watches():
    watcher = libc.inotify_init1(0)
    if watcher < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    count = 0
    while True:
        os.makedirs(f"watched-{os.getpid()}/{count}")
        if libc.inotify_add_watch(watcher, f"watched-{os.getpid()}/{count}".encode(), 2) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
        count += 1
        yield 1024


def names_that_are_not_there():
    count = 0
    while True:
        os.path.exists(f"/usr/{os.getpid()}-{count}-" + "n" * 200)
        count += 1
        yield 400


def empty_files():
    count = 0
    while True:
        os.close(os.open(f"empty-{os.getpid()}-{count}-" + "n" * 200, os.O_CREAT))
        count += 1
        yield 1000


def message_queues():
    while True:
        queue = call(240, f"q{os.getpid()}-{len(kept)}".encode(), os.O_CREAT | os.O_RDWR, 0o600, 0)
        kept.append(queue)
        yield 10 * 8192


def threads():
    forever = threading.Event()
    while True:
        threading.Thread(target=forever.wait, daemon=True).start()
        yield 16384


def system_calls_filters():
    code = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7fff0000) * 4000)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4000, ctypes.addressof(code)))
    libc.prctl(38, 1, 0, 0, 0)
    while True:
        if libc.prctl(22, 2, program, 0, 0) < 0:
            raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")
        yield 32000


def memory_files():
    while True:
        file = os.memfd_create("held")
        kept.append(file)
        for _ in range(64):
            yield os.write(file, BLOCK)


def landlock_rules():
    while True:
        ruleset = call(444, struct.pack("Q", 0x1fff), 8, 0)
        kept.append(ruleset)
        for folder in ("/usr", "/tmp", "/workspace"):
            parent = os.open(folder, os.O_PATH)
            kept.append(parent)
            call(445, ruleset, 1, struct.pack("=Qi", 4, parent), 0)
            yield 128


def segments():
    while True:
        kept.append(call(29, 0, 4 * MIB, 0o1600))
        libc.shmat.restype = ctypes.c_void_p
        at = libc.shmat(kept[-1], None, 0)
        ctypes.memset(at, 1, 4 * MIB)
        libc.shmdt(ctypes.c_void_p(at))
        yield 4 * MIB


def semaphores():
    while True:
        kept.append(call(64, 0, 1000, 0o1600))
        yield 64000


def work(kind, report):
    held, what = 0, "reached"
    try:
        for held_more in globals()[kind]():
            held += held_more
            if held >= MOST or time.monotonic() > end:
                break
        if held < MOST:
            what = "time"
    except OSError as error:
        what = errno.errorcode.get(error.errno, str(error.errno))
    except (MemoryError, RuntimeError) as error:
        what = type(error).__name__
    os.write(report, struct.pack("=Q32s", held, what.encode()))
    time.sleep(60)


def main():
    kind = sys.argv[1]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    report, theirs = os.pipe()
    children = []
    for _ in range(WORKERS):
        child = os.fork()
        if child == 0:
            work(kind, theirs)
            os._exit(0)
        children.append(child)
    os.close(theirs)
    held, how = 0, set()
    for _ in children: # one that was killed says nothing
        if not select.select([report], [], [], max(0, end + 2 - time.monotonic()))[0]:
            break
        word = os.read(report, 40)
        if not word:
            break
        bytes_held, what = struct.unpack("=Q32s", word)
        held += bytes_held
        how.add(what.rstrip(b"\0").decode())
    print(f"held {held} {','.join(sorted(how))}", flush=True)
    time.sleep(1) # so that it is seen from outside
    for child in children:
        os.kill(child, signal.SIGKILL)


end = time.monotonic() + 6
main()

"""escape.py - what every attempt uses: raw system calls, and one line that says what happened.

An attempt is a function under @attempt that tries one thing from inside:
    OSError             the kernel stopped it        -> stopped errno=EPERM
    stopped("bounded")  something else stopped it    -> stopped outcome=bounded
    a text              it worked                    -> ESCAPED text
Plain Python and ctypes, so that it runs in the smallest template. What the test knows about the host
(files to look for, ids, sockets of a neighbour) is in HOST."""

import ctypes
import errno
import json
import os
import signal
import sys
import time

CALLS = {
    "ioctl": 16, "shmget": 29, "sendfile": 40, "socket": 41, "setsockopt": 54, "clone": 56, "fcntl": 72,
    "getpid": 39, "ptrace": 101, "syslog": 103, "mknod": 133, "personality": 135, "setpriority": 141,
    "sched_setscheduler": 144, "mlock": 149, "vhangup": 153, "modify_ldt": 154, "pivot_root": 155,
    "prctl": 157, "adjtimex": 159, "chroot": 161, "sync": 162, "acct": 163, "settimeofday": 164,
    "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170,
    "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176,
    "quotactl": 179, "capget": 125, "capset": 126, "rt_sigqueueinfo": 129, "io_setup": 206,
    "lookup_dcookie": 212, "remap_file_pages": 216, "timer_create": 222, "clock_settime": 227,
    "mbind": 237, "mq_open": 240, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
    "ioprio_set": 251, "migrate_pages": 256, "unshare": 272, "splice": 275, "tee": 276, "vmsplice": 278,
    "move_pages": 279, "perf_event_open": 298, "fanotify_init": 300, "prlimit64": 302,
    "name_to_handle_at": 303, "open_by_handle_at": 304, "clock_adjtime": 305, "syncfs": 306, "setns": 308,
    "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313,
    "sched_setattr": 314, "seccomp": 317, "memfd_create": 319, "kexec_file_load": 320, "bpf": 321,
    "userfaultfd": 323, "pidfd_open": 434, "io_uring_setup": 425, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "memfd_secret": 447,
    "cachestat": 451, "statmount": 457, "listmount": 458, "msgget": 68, "semget": 64, "mmap": 9,
    "sched_setaffinity": 203, "linkat": 265,
}

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

try:
    with open("/workspace/host.json", encoding="utf-8") as _file:
        HOST = json.load(_file)
except OSError:
    HOST = {}


class Stopped(Exception):
    """Something other than an errno stopped the attempt."""


def stopped(outcome):
    return Stopped(outcome)


def _word(value):
    if value is None:
        return ctypes.c_void_p(None)
    if isinstance(value, int):
        return ctypes.c_ulong(value & 0xffffffffffffffff)
    if isinstance(value, bytes):
        return ctypes.c_char_p(value)
    return ctypes.byref(value)


def call(name, *arguments):
    """The system call itself, without what libc makes of it."""
    number = CALLS[name] if isinstance(name, str) else name
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[_word(value) for value in arguments])
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(name))
    return result


def in_child(function, seconds=5):
    """Runs function in a child and gives its wait status; a child that takes too long is killed."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            function()
        except BaseException:  # pylint: disable=broad-except
            os._exit(1)
        os._exit(0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def run_code(machine_code):
    """Runs bytes of machine code."""
    import mmap
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(machine_code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return ctypes.CFUNCTYPE(ctypes.c_long)(address)()


def fill(folder, most_bytes):
    """Writes until the disk is full, at most most_bytes; gives (bytes, errno or None)."""
    path = os.path.join(folder, "escape-filler")
    block = b"\0" * (1 << 20)
    written = 0
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while written < most_bytes:
            written += os.write(file, block)
        return written, None
    except OSError as error:
        return written, error.errno
    finally:
        os.close(file)
        os.unlink(path)


def fill_inodes(folder, most):
    """Makes empty files until there can be no more, at most `most`; gives (files, errno or None)."""
    folder = os.path.join(folder, "escape-files")
    os.mkdir(folder)
    made = 0
    try:
        while made < most:
            os.close(os.open(f"{folder}/{made}", os.O_WRONLY | os.O_CREAT, 0o600))
            made += 1
        return made, None
    except OSError as error:
        return made, error.errno
    finally:
        for name in os.listdir(folder):
            os.unlink(f"{folder}/{name}")
        os.rmdir(folder)


def attempt(function):
    """Runs the attempt at once and prints its line."""
    name = os.path.basename(sys.argv[0]).removesuffix(".py")
    try:
        result = function()
    except OSError as error:
        result = f"stopped errno={errno.errorcode.get(error.errno, error.errno)}"
    except Stopped as outcome:
        result = f"stopped outcome={outcome}"
    except MemoryError:
        result = "stopped errno=ENOMEM"
    else:
        if isinstance(result, Stopped):
            result = f"stopped outcome={result}"
        else:
            result = f"ESCAPED {result}"
    print(f"@escape {name} {result}", flush=True)
    return function

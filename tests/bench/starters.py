"""Starts whole programs and times them, from a small process of its own so that a start is cheap.

A starter may stand in a private mount namespace, or in the template itself (chroot): then "bare
python3" is the very interpreter and the very libraries that the sandboxes run."""
import ctypes
import json
import os
import select
import signal
import time

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS = 0x20000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
FILTER = 9 # as peers.py names it


def mount(source, target, kind=None, flags=0, data=None):
    texts = [text.encode() if text else None for text in (source, target, kind)]
    if LIBC.mount(*texts, ctypes.c_ulong(flags), data.encode() if data else None) < 0:
        raise OSError(ctypes.get_errno(), f'mount on {target}')


def leave_host_mounts():
    """What is mounted from here on is seen by this process only and goes with it."""
    if LIBC.unshare(CLONE_NEWNS) < 0:
        raise OSError(ctypes.get_errno(), 'unshare')
    mount('none', '/', flags=MS_REC | MS_PRIVATE)


def stand_in_template(template, scratch):
    leave_host_mounts()
    root = f'{scratch}/bare'
    os.makedirs(root, exist_ok=True)
    mount(template, root, flags=MS_BIND)
    mount(template, root, flags=MS_BIND | MS_REMOUNT | MS_RDONLY)
    mount('/proc', f'{root}/proc', flags=MS_BIND | MS_REC)
    mount('/dev', f'{root}/dev', flags=MS_BIND | MS_REC)
    mount('tmpfs', f'{root}/tmp', 'tmpfs')
    mount(f'{scratch}/home', f'{root}/home/user', flags=MS_BIND)
    os.chroot(root)
    os.chdir('/tmp')


def stand_among_peers(template, scratch):
    """A read-only root for those that only read, a layered one for those that write into it.
    crun refuses a host with both versions of control groups, so v2 is out of sight."""
    leave_host_mounts()
    for name in ('root', 'layers', 'layered'):
        os.makedirs(f'{scratch}/{name}', exist_ok=True)
    mount(template, f'{scratch}/root', flags=MS_BIND)
    mount(template, f'{scratch}/root', flags=MS_BIND | MS_REMOUNT | MS_RDONLY)
    mount('tmpfs', f'{scratch}/layers', 'tmpfs')
    for name in ('upper', 'work'):
        os.mkdir(f'{scratch}/layers/{name}')
    mount('overlay', f'{scratch}/layered', 'overlay', 0,
          f'lowerdir={template},upperdir={scratch}/layers/upper,workdir={scratch}/layers/work')
    if os.path.isdir('/sys/fs/cgroup/memory'):
        LIBC.umount2(b'/sys/fs/cgroup/unified', MNT_DETACH)


class Starter:
    def __init__(self, stand=None):
        self.orders, theirs = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.orders[1])
            os.close(theirs[0])
            try:
                self._serve(os.fdopen(self.orders[0]), os.fdopen(theirs[1], 'w'), stand)
            finally:
                os._exit(0)
        os.close(self.orders[0])
        os.close(theirs[1])
        self.orders, self.answers = os.fdopen(self.orders[1], 'w'), os.fdopen(theirs[0])

    def run(self, argv, environment, opened=None, timeout=30):
        """Milliseconds from the start to the end of the process, and its output; None if it failed. `opened` is a file that it
        finds open as descriptor 9."""
        print(json.dumps([argv, environment, opened, timeout]), file=self.orders, flush=True)
        line = self.answers.readline()
        return json.loads(line) if line else [None, 'the starter is gone']

    def close(self):
        # A word, because later starters hold copies of the pipe: its end would never come.
        print('null', file=self.orders, flush=True)
        self.orders.close()
        self.answers.close()
        os.waitpid(self.pid, 0)

    @staticmethod
    def _serve(orders, answers, stand):
        null = os.open('/dev/null', os.O_RDWR | os.O_CLOEXEC)
        problem = None
        try:
            if stand:
                stand()
        except OSError as error:
            problem = str(error)
        while (order := json.loads(orders.readline() or 'null')) is not None:
            answer = [None, problem] if problem else start_one(null, *order)
            print(json.dumps(answer), file=answers, flush=True)


def start_one(null, argv, environment, opened, timeout):
    reader, writer = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, writer, 1),
               (os.POSIX_SPAWN_DUP2, writer, 2), (os.POSIX_SPAWN_CLOSE, reader)]
    if opened:
        actions.append((os.POSIX_SPAWN_OPEN, FILTER, opened, os.O_RDONLY, 0))
    begin = time.perf_counter()
    try:
        pid = os.posix_spawn(argv[0], argv, environment, file_actions=actions, setpgroup=0)
    except OSError as error:
        os.close(reader)
        os.close(writer)
        return [None, str(error)]
    os.close(writer)
    output = b''
    while True:
        left = begin + timeout - time.perf_counter()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(reader)
            return [None, f'no end after {timeout} s']
        piece = os.read(reader, 65536)
        if not piece:
            break
        output += piece
    _, status = os.waitpid(pid, 0)
    took = (time.perf_counter() - begin) * 1e3
    os.close(reader)
    text = output.decode(errors='replace')
    return [took if status == 0 else None, text]

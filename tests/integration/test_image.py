"""Memory images of interpreters: another process continues from an image; what it has then, and which images are
refused."""

import json
import os
import pathlib
import subprocess

import pytest

from conftest import BUILD, STATE

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts the template's files, as root")
RIG = pathlib.Path(__file__).with_name("image_rig.py")


def take(*steps, template=None):
    """[code, stdout, stderr] of each step (image_rig.py)."""
    template = template or next(name for name in ("minimal", "python") if (STATE / "templates" / name).exists())
    done = subprocess.run(["unshare", "-m", "/usr/bin/python3", "-B", RIG, BUILD,
                           STATE / "templates" / template / "root"], input=json.dumps(steps), timeout=120,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def both(before, after, **how):
    """The code before the image, and after it: in the original, then in what is restored."""
    (first, first_out, first_err), *rest = take(
        {"run": f"{before}\nrestored = image('/workspace/image')\n{after}\n"}, {"restore": "/workspace/image"}, **how)
    assert (first, first_err) == (0, ""), first_err
    code, out, err = rest[0]
    assert (code, err) == (0, ""), err
    return first_out, out


def test_variables_go_on_in_both():
    before = """
import math, os
numbers, text = [1, 2.5, 3], 'ä' * 1000
def count():
    for i in range(10):
        yield i
counter = count()
next(counter), next(counter)
try:
    1 / 0
except ZeroDivisionError as error:
    kept = error
"""
    after = """
numbers.append(os.getpid())
print(restored, len(numbers), len(text), next(counter), next(counter), repr(kept), kept.__traceback__.tb_lineno > 0)
"""
    first, then = both(before, after)
    assert first == "False 4 1000 2 3 ZeroDivisionError('division by zero') True\n"
    assert then == first.replace("False", "True")


# What a program has, what it says of it after the image; the same in both unless a third text differs.
KEPT = {
    "files at their places": ("""
a = open('/workspace/a.txt', 'w+'); a.write('one two three'); a.flush(); a.seek(4)
b = os.open('/workspace/b.txt', os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL); os.write(b, b'first')
c = open('/usr/lib/os-release'); line = c.readline()
folder = os.open('/workspace', os.O_RDONLY | os.O_DIRECTORY)
os.dup2(c.fileno(), 40, inheritable=True)
""", """
os.write(b, b' next')
print(a.read(3), open('/workspace/b.txt').read().startswith('first next'), c.readline() != line,
      'b.txt' in os.listdir(folder), os.get_inheritable(40), os.get_inheritable(b), os.lseek(40, 0, os.SEEK_CUR) > 0)
""", "two True True True True False True\n"),
    "the folder, the mask, signals, limits and the name": ("""
import faulthandler, resource, signal, threading
faulthandler.enable()
os.mkdir('/workspace/deep', 0o700); os.chdir('/workspace/deep'); os.umask(0o027)
signal.signal(signal.SIGUSR1, lambda *_: print('usr1', flush=True)); signal.signal(signal.SIGUSR2, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
open('/proc/self/comm', 'w').write('worker')
""", """
os.kill(os.getpid(), signal.SIGUSR1); os.kill(os.getpid(), signal.SIGUSR2)
print(os.getcwd(), oct(os.umask(0)), signal.pthread_sigmask(signal.SIG_BLOCK, []) == {signal.SIGHUP},
      resource.getrlimit(resource.RLIMIT_NOFILE)[0], open('/proc/self/comm').read().strip(),
      threading.main_thread().native_id == os.getpid() == threading.get_native_id())
""", "usr1\n/workspace/deep 0o27 True 200 worker True\n"),
    "streams that were moved about": ("""
saved = os.dup(1)
spare = open('/workspace/out.txt', 'w+')
os.dup2(spare.fileno(), 1)
""", """
os.write(1, b'to the file '); os.write(saved, b'to the stream\\n'); spare.seek(0)
os.write(saved, str('to the file' in spare.read()).encode())
os.dup2(saved, 1)
""", "to the stream\nTrue"),
    "descriptors that share their place": ("""
one = os.open('/workspace/log', os.O_RDWR | os.O_CREAT); os.write(one, b'begin ')
two = os.dup(one); other = os.open('/workspace/log', os.O_RDWR); os.lseek(other, 6, 0)
reads = open('/usr/lib/os-release', 'rb', buffering=0); same = os.dup(reads.fileno()); apart = os.open('/usr/lib/os-release', 0)
import tempfile
gone = tempfile.TemporaryFile(buffering=0); gone.write(b'12345'); also = os.dup(gone.fileno())
""", """
os.write(one, b'first '); os.write(two, b'second '); os.write(other, b'other')
reads.read(7)
print(os.pread(one, 99, 0)[:24], os.lseek(same, 0, 1), os.lseek(apart, 0, 1), gone.write(b'6'), os.lseek(also, 0, 1),
      os.pread(also, 99, 0))
""", "b'begin other second ' 7 0 1 6 b'123456'\n"),
    "files without a name": ("""
import mmap, tempfile
file = tempfile.TemporaryFile(); file.write(b'kept ' * 3000); file.seek(10); file.flush()
gone = open('/workspace/gone', 'w+'); gone.write('gone'); gone.flush(); os.unlink('/workspace/gone')
only = os.open('/workspace', os.O_TMPFILE | os.O_WRONLY); os.write(only, b'12')
memory = os.memfd_create('memory'); os.ftruncate(memory, 5000); view = mmap.mmap(memory, 5000); view[4999] = 7
empty = os.memfd_create('empty')
""", """
view[0] = 8
os.write(only, b'3'); os.write(empty, b'now')
print(file.read(5), os.fstat(file.fileno()).st_size, gone.tell(), gone.seek(0), gone.read(), os.fstat(only).st_size,
      os.pread(memory, 1, 0), os.pread(memory, 9, 4999), os.pread(empty, 9, 0), os.fstat(memory).st_size)
""", "b'kept ' 15000 4 0 gone 3 b'\\x08' b'\\x07' b'now' 5000\n"),
    "random streams": ("""
import random, tempfile, uuid
random.seed(5); own = random.Random(6); [random.random() for _ in range(700)]; uuid.getnode()
""", """
print(random.random(), own.random(), random.gauss(0, 1))
""", None),
    "memory that is shared": ("""
import mmap, multiprocessing.shared_memory as shared
whole = mmap.mmap(-1, 1 << 20); whole[4096 * 9] = 7
memory = os.memfd_create('pair'); os.ftruncate(memory, 8192)
one, other = mmap.mmap(memory, 8192), mmap.mmap(memory, 8192); one[5000] = 3
os.close(memory)
open('/workspace/data', 'wb').write(bytes(range(256)) * 64)
file = open('/workspace/data', 'r+b'); view = mmap.mmap(file.fileno(), 0)
copy = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY); copy[0] = 99
locked = mmap.mmap(-1, 4096); locked[0] = 5
""", """
one[5001] = 4; view[1] = view[1] + 1
print(whole[4096 * 9], other[5000], other[5001], view[255], copy[0], copy[300], view[0],
      open('/workspace/data', 'rb').read(2)[1] == view[1], locked[0])
""", "7 3 4 255 99 44 0 True 5\n"),
    "exceptions, generators, coroutines, classes": ("""
import collections, contextlib, dataclasses, decimal, re
decimal.getcontext().prec = 5
@dataclasses.dataclass
class Point:
    x: int = 0
@contextlib.contextmanager
def manager():
    yield Point(4)
stack = contextlib.ExitStack(); point = stack.enter_context(manager())
pattern = re.compile('a+'); queue = collections.deque(range(5), maxlen=5)
async def later():
    return 8
waiting = later()
""", """
queue.append(9)
try:
    waiting.send(None)
except StopIteration as end:
    value = end.value
print(decimal.Decimal(1) / 3, point, pattern.sub('b', 'caat'), list(queue), value, stack.close())
""", "0.33333 Point(x=4) cbt [1, 2, 3, 4, 9] 8 None\n"),
    "a deep stack": ("""
import sys
sys.setrecursionlimit(30000)
def deep(n):
    return 0 if n == 0 else 1 + deep(n - 1)
key = lambda n: deep(n)
def nested(n):  # through C, so that the stack of the processor grows
    return 0 if n == 0 else 1 + max(map(nested, [n - 1]))
""", """
print(deep(20000), nested(5000))
""", "20000 5000\n"),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept(name):
    before, after, wanted = KEPT[name]
    first, then = both(before, after)
    assert first == then, name
    assert wanted is None or first == wanted


# What a restored interpreter can do, and what it has lost.
THEN = {
    "large and small pieces of memory": ("small = [bytes(100) for _ in range(200000)]", """
del small[::2]
large = bytearray(100 << 20); large[::4096] = b'x' * len(large[::4096])
more = [bytes(200) for _ in range(300000)]; pieces = [bytearray(70000) for _ in range(500)]
print(large.count(b'x'), len(more), all(len(piece) == 70000 and not any(piece[::997]) for piece in pieces),
      all(piece == bytes(100) for piece in small))
del large, more, pieces
""", "25600 300000 True True\n"),
    "threads and processes": ("""
import concurrent.futures, multiprocessing, subprocess, sys, threading
sleeper = threading.Event(); thread = threading.Thread(target=sleeper.wait, daemon=True); thread.start()
""", """
lost = _glovebox.lost() if restored else (1, 0)
pool = concurrent.futures.ThreadPoolExecutor(4)
print(sorted(pool.map(lambda x: x * x, range(5))), thread.is_alive() == (not restored), lost,
      subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True).stdout,
      multiprocessing.get_context('fork').Pool(2).map(abs, [-1, -2]), os.popen('echo shell').read())
""", "[0, 1, 4, 9, 16] True (1, 0) b'42\\n' [1, 2] shell\n\n"),
    "time, and a new identity": ("""
import time
began, wall, pid = time.monotonic(), time.time(), os.getpid()
""", """
print(0 <= time.monotonic() - began < 60, 0 <= time.time() - wall < 60, os.getpid() != pid or not restored,
      os.path.exists(f'/proc/{os.getpid()}'), len(os.sched_getaffinity(0)) > 0)
""", "True True True True True\n"),
    "pipes and sockets have ended": ("""
import select, socket
reader, writer = os.pipe(); one, other = socket.socketpair(); poll = select.epoll(); poll.register(reader)
before = set(os.listdir('/proc/self/fd'))
""", """
if restored:
    print(os.read(reader, 5), one.recv(5), _glovebox.lost()[1], set(os.listdir('/proc/self/fd')) == before)
    try:
        os.write(writer, b'x')
    except BrokenPipeError:
        print('broken')
else:
    print(b'', b'', 5, True); print('broken')
""", "b'' b'' 5 True\nbroken\n"),
    "another image": ("""
values = [1]
""", """
if restored:
    values.append(2)
    again = image('/workspace/second')
    values.append(3 if again else 4)
    print(again, values)
    large = bytearray(30 << 20)
""", ""),
}


@pytest.mark.parametrize("name", THEN)
def test_what_goes_on(name):
    before, after, wanted = THEN[name]
    if name == "another image":
        (*_, errors), first, second = take({"run": f"{before}\nrestored = image('/workspace/image')\n{after}"},
                                           {"restore": "/workspace/image"}, {"restore": "/workspace/second"})
        assert (errors, first, second) == ("", [0, "False [1, 2, 4]\n", ""], [0, "True [1, 2, 3]\n", ""])
        return
    first, then = both(before, after)
    assert first == then == wanted


def test_pandas_goes_on():
    """Large arrays, and C extensions' own state."""
    if not (STATE / "templates" / "python").exists():
        pytest.skip("template python is not built")
    before = """
import lxml.etree, numpy, pandas, sqlite3
numbers = numpy.random.default_rng(1); numpy.random.seed(2)
frame = pandas.DataFrame(numbers.random((300_000, 10))); frame['g'] = frame.index % 7
tree = lxml.etree.fromstring('<a><b/></a>'); store = sqlite3.connect(':memory:')
store.execute('create table t (x)'); store.executemany('insert into t values (?)', [(n,) for n in range(1000)])
grouped = frame.groupby('g')
"""
    after = """
print(float(grouped.sum().sum().sum()), numbers.random(), numpy.random.random(), tree[0].tag,
      store.execute('select sum(x) from t').fetchone(), float((frame[0].values @ frame[1].values)))
"""
    first, then = both(before, after, template="python")
    assert first == then and "b (499500,)" in first


FAR = 1 << 47
OURS = 0x2A0000000000
HOSTILE = [
    # what is changed, what is said
    ({"cut": 0}, "the image ends early"),
    ({"cut": 100}, "the image ends early"),
    ({"cut": 5000}, "the image ends early"),
    ({"cut": 1_000_000}, "the image ends early"),
    ({"cut": -16}, "the image ends early"),
    ({"cut": -1}, "the image ends early"),
    ({"head.magic": "GLBEND\n"}, "cannot restore this image: it is not an image"),
    ({"head.magic": "GLBNOT\n"}, "there is no image: ?"),
    ({"head.version": 2}, "cannot restore this image: its format has another version"),
    ({"head.machine": 3}, "cannot restore this image: it is an image of another machine"),
    ({"head.page": 0}, "cannot restore this image: it is an image of another machine"),
    ({"head.page": 1 << 31}, "cannot restore this image: it is an image of another machine"),
    ({"head.areas": 0}, "cannot restore this image: it has no memory areas, or too many"),
    ({"head.areas": 0xFFFFFFFF}, "cannot restore this image: it has no memory areas, or too many"),
    ({"head.names": 0}, "cannot restore this image: it has no names, or too many"),
    ({"head.names": 1 << 63}, "cannot restore this image: it has no names, or too many"),
    ({"head.names": "+-1"}, "cannot restore this image: a name does not end with NUL"),
    ({"head.runs": 1 << 63}, "cannot restore this image: its contents are not whole pages"),
    ({"head.bytes": "+1"}, "cannot restore this image: its contents are not whole pages"),
    ({"head.bytes": "+4096"}, "the image does not end where it should"),
    ({"head.bytes": "+-4096"}, "the image has contents that fit no memory area"),
    ({"head.runs": "+-1"}, "the image does not end where it should"),
    ({"head.resume": 0}, "cannot restore this image: it has no valid point to resume at"),
    ({"head.resume": "=stack.start"}, "cannot restore this image: it has no valid point to resume at"),
    ({"head.stack": "=memory.start"}, "cannot restore this image: it has no valid point to resume at"),
    ({"head.stack": "+8"}, "cannot restore this image: it has no valid point to resume at"),
    ({"head.thread": OURS}, "cannot restore this image: it has no valid point to resume at"),
    ({"head.vdso": FAR}, "cannot restore this image: the vdso pages have invalid addresses"),
    ({"head.vdso": OURS, "head.vdso_end": OURS + 8192},
     "cannot restore this image: the vdso pages have invalid addresses"),
    ({"head.vdso": "=head.vvar", "head.vdso_end": "=head.vvar_end"},
     "cannot restore this image: the vdso pages overlap"),
    ({"head.vdso": "+4096"}, "the image is of another kernel, by the size of [vdso]"),
    ({"head.vdso": 0, "head.vdso_end": 0}, "the image is of another kernel, by the size of [vdso]"),
    ({"memory.start": 0}, "cannot restore this image: memory lies outside of the address space of programs"),
    ({"memory.start": "+1"}, "cannot restore this image: memory lies outside of the address space of programs"),
    ({"memory.start": "=memory.end"}, "cannot restore this image: memory lies outside of the address space of programs"),
    ({"stack.end": FAR}, "cannot restore this image: memory lies outside of the address space of programs"),
    ({"stack.end": 1 << 63}, "cannot restore this image: memory lies outside of the address space of programs"),
    ({"memory+1.start": "=memory.start"}, "cannot restore this image: memory areas overlap"),
    ({"stack.start": OURS, "stack.end": OURS + 4096}, "cannot restore this image: memory overlaps that of glovebox-restore"),
    ({"memory.start": 4096, "memory.end": FAR - 4096},
     "cannot restore this image: memory overlaps that of glovebox-restore"),
    ({"head.vdso": "=stack.start", "head.vdso_end": "=stack.end"},
     "cannot restore this image: memory overlaps the vdso pages"),
    ({"memory.kind": 0}, "cannot restore this image: memory has an unknown kind or protection"),
    ({"memory.kind": 9}, "cannot restore this image: memory has an unknown kind or protection"),
    ({"memory.protect": 0x1000}, "cannot restore this image: memory has an unknown kind or protection"),
    ({"memory.is_filled": 2}, "cannot restore this image: memory has an unknown kind or protection"),
    ({"memory.is_filled": 0}, "the image has contents that fit no memory area"),
    ({"file.name": 0}, "cannot restore this image: a file has no name"),
    ({"file.name": 1 << 31}, "cannot restore this image: a file has no name"),
    ({"memory.name": 1}, "cannot restore this image: a file has no name"),
    ({"file.name": 3}, "cannot restore this image: a file's path is not absolute"),
    ({"file.offset": 1}, "cannot restore this image: a file's offset is not at a page boundary"),
    ({"file.size": "+1"}, "this file has changed since the image was taken: /usr/"),
    ({"file.changed_ns": "+1"}, "this file has changed since the image was taken: /usr/"),
    ({"file.inode": "+1"}, "this file has changed since the image was taken: /usr/"),
    ({"shared.object": 1 << 31}, "cannot restore this image: shared memory is too large"),
    ({"shared.size": 1 << 50}, "cannot restore this image: shared memory is too large"),
    ({"shared.size": 0}, "cannot read the image (error 14)"),
    ({"open.is_filled": 1}, "cannot restore this image: it has contents for a shared file"),
    ({"open.size": "+1"}, "a mapped file has become smaller: /workspace/file"),
    ({"run.start": 0}, "the image has contents that fit no memory area"),
    ({"run.start": "+1"}, "the image has contents that fit no memory area"),
    ({"run.bytes": 0}, "the image has contents that fit no memory area"),
    ({"run.bytes": 1 << 63}, "the image has contents that fit no memory area"),
    ({"run.bytes": "=head.bytes"}, "the image has contents that fit no memory area"),
    ({"run.start": "=stack.start"}, "the image has contents that fit no memory area"),
]


def test_a_broken_image_is_refused_in_one_line():
    before = """
import mmap
whole = mmap.mmap(-1, 8192)
file = open('/workspace/file', 'w+b'); file.write(bytes(8192)); file.flush(); view = mmap.mmap(file.fileno(), 0)
"""
    _first, good, *answers = take(
        {"run": f"{before}\nif image('/workspace/image'): print('fine')"}, {"restore": "/workspace/image"},
        *({"restore": "/workspace/image", "change": change} for change, _ in HOSTILE))
    assert good == [0, "fine\n", ""]
    for (change, wanted), (code, out, err) in zip(HOSTILE, answers, strict=True):
        assert (code, out, err.count("\n")) == (125, "", 1), (change, code, out, err)
        assert err.startswith(f"glovebox-restore: {wanted}"), (change, err)


def test_every_step_is_allowed_behind_the_walls(daemon):
    """A session's interpreter writes itself down, and goes on as another process of the same sandbox."""
    session = daemon.session()
    code = """
import fcntl, os, socket, subprocess, sys, threading, time
sys.path.insert(0, "/usr/lib/glovebox")
import _glovebox as native
del sys.path[0]
value, file = {"kept": [1, 2]}, os.open("/tmp/image", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC)
began = time.monotonic()
if native.image(file, 63):
    thread = threading.Thread(target=lambda: value["kept"].append(3)); thread.start(); thread.join()
    print(value, open("/proc/self/comm").read().strip(), time.monotonic() - began < 60,
          subprocess.run(["echo", "more"], capture_output=True).stdout, len(bytearray(50 << 20)), flush=True)
    os._exit(7)
os.close(file)
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
while True:
    with open("/tmp/image", "rb") as image:
        image.seek(max(0, os.fstat(image.fileno()).st_size - 16))
        if image.read(8) == b"GLBEND\\n\\0":
            break
    time.sleep(.01)
image = os.open("/tmp/image", os.O_RDONLY)
def give():
    high = [fcntl.fcntl(file, fcntl.F_DUPFD, 20) for file in (theirs.fileno(), image)]
    os.dup2(high[0], 3), os.dup2(high[1], 4)
done = subprocess.run(["/usr/lib/glovebox/glovebox-restore"], preexec_fn=give, close_fds=False, capture_output=True)
done.returncode, done.stdout.decode(), done.stderr.decode()
"""
    answer = session.run(code)
    session.call("DELETE")
    assert answer["error"] is None, answer["error"]
    wanted = "{'kept': [1, 2, 3]} python3 True b'more\\n' 52428800\n"
    assert answer["results"][-1]["data"]["text/plain"] == repr((7, wanted, "")) and answer["denials"] == []

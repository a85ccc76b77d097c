"""The forked interpreter: parks, takes what init passes on, runs it, answers.

A message on the control socket is one frame of contract/inside.h. The end of an execution is said by
EXECUTED and never by the exit of the process: taking down a large address space takes milliseconds."""

import _signal  # the module signal turns each number into an enum: sixty copied pages
import gc
import os
import struct
import sys

import _glovebox
import _glovebox_cell
import _glovebox_fresh
import _glovebox_script

FRAME = struct.Struct("<IHHII")  # struct inside_frame
EXECUTE = struct.Struct("<IIHHI")  # struct inside_execute
RESULT = struct.Struct("<HHI")  # struct inside_result
EXECUTED = struct.Struct("<iiII")  # struct inside_executed
PRIME_MODE = struct.pack("<I", _glovebox.PRIME)
PIECE_MOST = _glovebox.PAYLOAD_MOST - RESULT.size


class Request:
    """What is to be run."""

    def __init__(self, payload):
        self.mode, self.flags, arguments, variables, code_size = EXECUTE.unpack_from(payload)
        strings, code = payload[EXECUTE.size :], b""
        if code_size:
            strings, code = strings[:-code_size], strings[-code_size:]
        texts = strings.split(b"\0")
        self.folder, self.path = os.fsdecode(texts[0]), os.fsdecode(texts[1])
        self.arguments = [os.fsdecode(text) for text in texts[2 : 2 + arguments]]
        self.variables = texts[2 + arguments : 2 + arguments + variables]
        if code_size and self.path and self.flags & _glovebox.WRITE:
            write_code(self.path, code)
        self.code = code if code_size else read_code(self.arguments[0] if arguments else self.path)
        self.ends = self.mode == _glovebox.SCRIPT or bool(self.flags & _glovebox.LAST)


def write_code(path, code):
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        while code:
            code = code[os.write(file, code) :]
    finally:
        os.close(file)


def read_code(path):
    if not path:
        return b""
    with open(path, "rb", buffering=0) as file:
        return file.readall()


class Channel:
    """The control socket. A program may close it, or open something else under its number: what is not
    the socket any more is left alone, and init sees the end of the process instead."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.inode = os.fstat(descriptor).st_ino
        self.owner = os.getpid()

    def receive(self):
        while True:
            try:
                message = os.read(self.descriptor, FRAME.size + _glovebox.PAYLOAD_MOST)
            except KeyboardInterrupt:
                continue
            if not message:
                os._exit(0)
            _size, kind, _stream, number, _reserved = FRAME.unpack_from(message)
            return kind, number, message[FRAME.size :]

    def send(self, kind, number, payload):
        if os.getpid() != self.owner:
            return
        try:
            if os.fstat(self.descriptor).st_ino == self.inode:
                os.write(self.descriptor, FRAME.pack(len(payload), kind, 0, number, 0) + payload)
        except OSError:
            pass

    def send_result(self, number, what, text):
        body = text.encode("utf-8", "replace")
        for at in range(0, len(body), PIECE_MOST):
            last = at + PIECE_MOST >= len(body)
            self.send(_glovebox.RESULT, number,
                      RESULT.pack(what, last, 0) + body[at : at + PIECE_MOST])

    def forget_in_child(self):
        """A child that the program forks is not the interpreter that init talks to."""
        if os.getpid() != self.owner:
            try:
                if os.fstat(self.descriptor).st_ino == self.inode:
                    os.close(self.descriptor)
            except OSError:
                pass


channel = None


def after_fork_in_child():
    if channel is not None:
        channel.forget_in_child()


os.register_at_fork(after_in_child=after_fork_in_child)


def live(control, prime):
    global channel
    _glovebox_fresh.reseed()
    rehearse(prime)
    channel = Channel(control)
    count = 0
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    while True:
        kind, number, payload = channel.receive()
        if kind != _glovebox.EXECUTE:
            continue
        if payload[:4] == PRIME_MODE:
            rehearse(_glovebox.PRIME_WORK)
            answer(number, 0, 0, False, count)
            continue
        count += 1
        run(number, payload, count)


def begin(payload):
    """Reads the request and puts the process where the program expects to be."""
    request = Request(payload)
    _glovebox_fresh.set_environment(request.variables)
    if request.folder:
        os.chdir(request.folder)
    gc.enable()
    return request


def run(number, payload, count):
    try:
        request = begin(payload)
    except (OSError, struct.error, IndexError, ValueError) as error:
        os.write(2, f"glovebox: cannot start the program: {error}\n".encode())
        answer(number, 126, 0, True, count)
        os._exit(126)
    request.send_result = lambda what, text: channel.send_result(number, what, text)
    code = run_interruptibly(request, count)
    if not request.ends and os.getpid() == channel.owner:
        answer(number, code, 0, False, count)
        return
    code = _glovebox_script.finish(code)
    if code == _glovebox_script.INTERRUPTED:
        answer(number, -1, _signal.SIGINT, True, count)
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        os.kill(os.getpid(), _signal.SIGINT)
    answer(number, code, 0, True, count)
    os._exit(code)


def run_interruptibly(request, count):
    """SIGINT is the program's while it runs; between cells it means nothing."""
    try:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        if request.mode == _glovebox.SCRIPT:
            return _glovebox_script.run(request.path, request.arguments, request.code)
        code = _glovebox_cell.run(request, count)
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    except KeyboardInterrupt:  # it came after the last line had run
        code = 1
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    return code


def answer(number, code, signal_number, ends, count):
    channel.send(_glovebox.EXECUTED, number, EXECUTED.pack(code, signal_number, ends, count))


# --- rehearsal: harmless code on the very path that a request will take --------------------------------

PLACE = "/tmp/main.py"
PRINT = b"print('glovebox')\n"

# What programs with these modules usually do first.
WORK = {
    "numpy": b"import numpy\nnumpy.arange(10).sum()\n",
    "pandas": b"""import io, pandas
t = pandas.read_csv(io.StringIO('a,b\\n1,0.5\\n2,1.5\\n1,2.5\\n'))
print(t.groupby('a').b.mean().describe(), t[t.a > 1].sort_values('b'), t.describe())
""",
}
FIGURE = (b"import io, matplotlib.pyplot as p\np.plot([1, 2])\np.title('a')\n"
          b"p.savefig(io.BytesIO(), format='png')\np.close('all')\n")


def rehearse(prime):
    """Runs harmless code, output into nothing, so that the first page faults and the copies of the pages that
    every program writes to are paid before a request comes."""
    if prime == 0:
        return
    codes = [PRINT]
    if prime == _glovebox.PRIME_WORK:
        codes += [code for name, code in WORK.items() if name in sys.modules]
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    kept = os.dup(1)
    try:
        os.dup2(null, 1)
        for code in codes:
            rehearse_one(code, Channel(null))
    finally:
        os.dup2(kept, 1)  # inheritable: programs that the code starts print there too
        os.close(kept)
        os.close(null)


def rehearse_one(code, nowhere):
    variables = (b"HOME=/home/user", b"TZ=UTC", b"PYTHONPATH=/workspace")
    payload = EXECUTE.pack(_glovebox.SCRIPT, _glovebox.WRITE, 1, len(variables), len(code))
    payload += b"/\0" + 2 * (PLACE.encode() + b"\0") + b"".join(text + b"\0" for text in variables) + code
    request = begin(payload)
    _glovebox_script.run(request.path, request.arguments, request.code)
    _glovebox_script.flush()
    _glovebox_script.forget_main()
    gc.collect()
    nowhere.send(_glovebox.EXECUTED, 0, EXECUTED.pack(0, 0, 1, 1))
    gc.disable()
    os.environ.clear()
    os.unlink(PLACE)


def rehearse_in_zygote():
    """The same once for all children: modules that are imported late, caches, specialised bytecode."""
    gc.freeze()
    for _ in range(12):  # CPython 3.11 specialises a function after 8 calls
        rehearse(_glovebox.PRIME_WORK)
    if "matplotlib.pyplot" in sys.modules:
        _glovebox_script.run(PLACE, [], FIGURE)
        _glovebox_script.forget_main()
        # Fonts are open files; a child closes every descriptor that it was not given.
        sys.modules["matplotlib.font_manager"]._get_font.cache_clear()
    _glovebox_cell.rehearse()
    # What is known about folders that every sandbox has for itself does not hold there.
    for place in [place for place in sys.path_importer_cache if not place.startswith("/usr/")]:
        del sys.path_importer_cache[place]
    _glovebox_script.remember_modules()
    gc.unfreeze()

"""The forked interpreter: waits for code from init, runs it, and sends the results.

Its messages are frames of contract/agent.h (interpreter/channel.c). EXECUTED reports the end of an execution, not the
exit of the process: freeing a large address space takes milliseconds."""

import _signal  # the module signal makes an enum of each number, which copies sixty pages
import gc
import os
import struct
import sys
from os import getpid  # as it was before the program

import _glovebox
import _glovebox_cell
import _glovebox_fresh
import _glovebox_rehearsal
import _glovebox_script

_glovebox_cell._glovebox_script = _glovebox_script
EXECUTE = struct.Struct("<IIHHI")  # struct inside_execute
PRIME_MODE = struct.pack("<I", _glovebox.PRIME)


class Request:
    """The code to run, and how."""

    def __init__(self, payload):
        self.mode, self.flags, names, texts, code = _glovebox.unpack(payload)
        self.folder, self.path, *self.arguments = texts[:names]
        self.variables = texts[names:]
        if code and self.path and self.flags & _glovebox.WRITE:
            write_code(self.path, code)
        self.code = code or read_code(self.arguments[0] if self.arguments else self.path)
        self.ends = self.mode == _glovebox.SCRIPT or bool(self.flags & _glovebox.LAST)
        self.is_told = False  # its exception has been reported


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


def live(control, prime):
    """The child's main function. SIGINT is ignored since the zygote was prewarmed."""
    _glovebox_fresh.reseed()
    if prime:
        prewarm(prime)
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    SERVE(control)


def complain_of_image(number, error):
    """Sends the cause as a RESULT, in characters that JSON need not escape."""
    try:
        text = "".join(letter if " " <= letter <= "~" and letter not in '"\\' else "'" for letter in error.strerror)
        _glovebox.result(number, _glovebox.ERROR, f'{{"name": "OSError", "value": "{text}"}}'.encode())
    except BaseException:  # send the number alone
        pass


def imager():
    """Returns the function by which a child writes an image of this process, between two cells, into a pipe. The function
    also returns in each process that is restored from the image, in another sandbox."""
    kind, make, executed, open_channel = _glovebox.IMAGE, _glovebox.image, _glovebox.executed, _glovebox.open_channel
    keep, renew, revive_loop, close = _glovebox_fresh.keep, _glovebox_fresh.renew, _glovebox_cell.revive_loop, os.close
    result, display, lost = _glovebox.result, _glovebox.DISPLAY, _glovebox.lost

    def image(message, count, control):
        if message[0] != kind or message[3] < 0:
            return
        os_error = 0
        try:
            kept = keep()
            is_restored = make(message[3], control)
        except OSError as error:
            is_restored, os_error = False, error.errno or 5
            complain_of_image(message[1], error)
        if is_restored:
            open_channel(control)
            renew(kept)
            revive_loop()
            result(message[1], display, b'{"threads": %d, "descriptors": %d}' % lost())
        else:
            close(message[3])
        executed(message[1], os_error, 0, False, count)

    return image


def server(receive, executed, wanted, leave, image):
    """Nothing here is looked up by a name that a program can change: whatever it has changed, an execution ends with
    EXECUTED or with the interpreter."""
    open_channel = _glovebox.open_channel

    def serve(control):
        open_channel(control)
        count = 0
        while True:
            message = receive()
            if message is None:
                leave(0)
            if message[0] != wanted:
                image(message, count, control)
                continue
            if message[2][:4] == PRIME_MODE:
                prewarm(_glovebox.PRIME_WORK, is_whole=True)
                executed(message[1], 0, 0, False, count)
                continue
            count += 1
            try:
                run(message[1], message[2], count)
            except BaseException as error:
                kind = type(error)
                try:
                    complain(error)
                except BaseException:
                    pass
                executed(message[1], 1, 0, True, count)
                leave(1)
                raise kind from None

    return serve


# Made in the zygote: each name that a child looks up copies a page.
SERVE = server(_glovebox.receive, _glovebox.executed, _glovebox.EXECUTE, os._exit, imager())


def complain(error):
    os.write(2, f"glovebox: the interpreter cannot go on, its own parts were changed: {error!r}\n".encode())


def begin(payload):
    """Reads the request, and sets the working folder and environment of the program."""
    request = Request(payload)
    _glovebox_fresh.set_environment(request.variables)
    if request.folder:
        os.chdir(request.folder)
    gc.enable()
    return request


def run(number, payload, count, is_prewarm=False):
    try:
        request = begin(payload)
    except (OSError, ValueError) as error:
        if is_prewarm:
            raise
        os.write(2, f"glovebox: cannot start the program: {error}\n".encode())
        _glovebox.executed(number, 126, 0, True, count)
        os._exit(126)
    request.number = number
    owner = getpid()
    code = run_interruptibly(request, count)
    if not request.ends and getpid() == owner:
        _glovebox.executed(number, code, 0, False, count)
        return
    code = _glovebox_script.finish(code, is_prewarm)
    if is_prewarm:
        return
    if code == _glovebox_script.INTERRUPTED:
        _glovebox.executed(number, -1, _signal.SIGINT, True, count)
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        os.kill(os.getpid(), _signal.SIGINT)
    _glovebox.executed(number, code, 0, True, count)
    os._exit(code)


def run_interruptibly(request, count):
    """SIGINT interrupts the program while it runs, and is ignored between cells. No further SIGINT can interrupt the
    report of an error, since deafen() is the first call after one was caught."""
    try:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        if request.mode == _glovebox.SCRIPT:
            return _glovebox_script.run(request.path, request.arguments, request.code)
        code = _glovebox_cell.run(request, count)
        _glovebox.deafen()
    except BaseException as error:  # before the first line, after the last, or while another was reported
        _glovebox.deafen()
        code = 1
        if request.mode != _glovebox.SCRIPT and not request.is_told:
            _glovebox_cell.tell(request, error)
        elif not isinstance(error, KeyboardInterrupt):
            raise
    return code


# --- prewarming: runs harmless code the same way as a request ------------------------------------------

PLACE = "/tmp/main.py"
VARIABLES = (  # as many and as long as a request has (run_environment.c)
    b"PATH=/usr/local/bin:/usr/bin:/bin", b"HOME=/home/user", b"USER=user", b"LOGNAME=user", b"SHELL=/bin/bash",
    b"LANG=C.UTF-8", b"TZ=UTC", b"TMPDIR=/tmp", b"PWD=/workspace", b"PYTHONPATH=/workspace",
    b"PYTHONDONTWRITEBYTECODE=1", b"PYTHONUNBUFFERED=1", b"MPLBACKEND=Agg")
PRINT = b"print('glovebox')\n"

# What programs that use these modules usually do first.
WORK = {
    "numpy": b"import numpy\nnumpy.arange(10).sum()\n",
    "pandas": b"""import io, pandas
t = pandas.read_csv(io.StringIO('a,b\\n1,0.5\\n2,1.5\\n1,2.5\\n'))
print(t.groupby('a').b.mean().describe(), t[t.a > 1].sort_values('b'), t.describe())
""",
}
FIGURE = (b"import io, matplotlib.pyplot as p\np.plot([1, 2])\np.title('a')\n"
          b"p.savefig(io.BytesIO(), format='png')\np.close('all')\n")


def prewarm(prime, is_whole=False):
    """Runs harmless code without output, so that page faults on what every program touches happen before a request
    comes. `is_whole` includes interrupts and the end of a script; it costs more memory, and is for the sandboxes that
    are taken next."""
    if prime == 0:
        return
    codes = [PRINT]
    if prime == _glovebox.PRIME_WORK:
        codes = [code for name, code in WORK.items() if name in sys.modules] + codes
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    kept = os.dup(1)
    try:
        os.dup2(null, 1)
        for code in codes:
            prewarm_one(code, is_whole)
        if is_whole:
            take_room()
    finally:
        os.dup2(kept, 1)  # inheritable: programs that the code starts print there too
        os.close(kept)
        os.close(null)


def take_room():
    """Touches the next pages of the heap, for a request that is larger than the prewarming."""
    _ = [bytes(1000) for _ in range(64)]


def prewarm_one(code, is_whole):
    payload = EXECUTE.pack(_glovebox.SCRIPT, _glovebox.WRITE, 1, len(VARIABLES), len(code))
    payload += b"/\0" + 2 * (PLACE.encode() + b"\0") + b"".join(text + b"\0" for text in VARIABLES) + code
    if is_whole:
        run(0, payload, 0, is_prewarm=True)
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    else:
        request = begin(payload)
        _glovebox_script.run(request.path, request.arguments, request.code)
        _glovebox_script.flush()
        _glovebox_script.forget_main()
        gc.collect()
    gc.disable()
    os.environ.clear()
    os.unlink(PLACE)


def spare_redraw(pyplot):
    """pyplot.savefig() ends with draw_idle(), which redraws the window that shows the figure. There is no window, and Agg
    would draw at once, which takes a third of the time of savefig()."""
    agg = sys.modules.get("matplotlib.backends.backend_agg")
    if agg is None:
        return
    draw_idle = agg.FigureCanvasAgg.draw_idle

    def draw_idle_but_for_savefig(canvas, *arguments, **options):
        caller = sys._getframe(1)
        if caller.f_code.co_name != "savefig" or caller.f_globals is not pyplot.__dict__:
            draw_idle(canvas, *arguments, **options)

    agg.FigureCanvasAgg.draw_idle = draw_idle_but_for_savefig


def prewarm_in_zygote():
    """Prewarms for all children: modules that are imported late, caches, specialised bytecode."""
    gc.freeze()
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)  # in every child from its first moment
    _glovebox_script.prepare_finish()
    _glovebox_rehearsal.rehearse()
    for _ in range(12):  # CPython 3.11 specialises a function after 8 calls
        prewarm(_glovebox.PRIME_WORK, is_whole=True)
    if "matplotlib.pyplot" in sys.modules:
        _glovebox_script.run(PLACE, [], FIGURE)
        _glovebox_script.forget_main()
        spare_redraw(sys.modules["matplotlib.pyplot"])
    _glovebox_cell.prewarm()
    _glovebox_script.forget_main()  # its last values are a chart with its image, and a frame
    if "matplotlib.font_manager" in sys.modules:
        # Fonts keep files open, but a child closes every descriptor except its own.
        sys.modules["matplotlib.font_manager"]._get_font.cache_clear()
    # Cached listings of folders that each sandbox has for itself would be wrong there.
    for place in [place for place in sys.path_importer_cache if not place.startswith("/usr/")]:
        del sys.path_importer_cache[place]
    _glovebox_script.remember_modules()
    _glovebox_fresh.prepare()
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    gc.unfreeze()

"""Runs a script as `python3 FILE ARGUMENT…` does, in a running interpreter."""

import atexit
import gc
import io
import os
import sys
import types

import _thread

import _glovebox
import _glovebox_errors

INTERRUPTED = -2
AT_START = frozenset(sys.modules["__main__"].AT_START)  # what every python3 imports before its program
COVERED = frozenset()  # those of OUR_MODULES that a file of the program can replace
OUR_MODULES = frozenset()  # what the zygote has imported; empty until it is done
LAST_MAIN = None  # the zygote's: freeing it would copy a hundred pages in every child
STANDARD_PATH = [place for place in sys.path if place != os.path.dirname(__file__)]


THREADING = None  # in the zygote: the module threading, its functions for the end, and how many these were
AT_THREADS_END, AT_THREADS_END_COUNT = (), 0
LOG_HANDLERS, OUR_LOG_HANDLERS = [], []


def prepare_finish():
    """In the zygote: so that a program without threads and logging does not touch these modules at its end."""
    global THREADING, AT_THREADS_END, AT_THREADS_END_COUNT, LOG_HANDLERS, OUR_LOG_HANDLERS
    THREADING = sys.modules.get("threading")
    AT_THREADS_END = getattr(THREADING, "_threading_atexits", None)
    if AT_THREADS_END is None:  # of another version
        THREADING = None
    else:
        AT_THREADS_END_COUNT = len(AT_THREADS_END)
    logging = sys.modules.get("logging")
    if logging is not None:
        atexit.unregister(logging.shutdown)
        LOG_HANDLERS = logging._handlerList
        OUR_LOG_HANDLERS = LOG_HANDLERS[:]


def end_threads(is_prewarm):
    """Waits for threads that are not daemons."""
    if THREADING is not None and _thread._count() == 0 and len(AT_THREADS_END) == AT_THREADS_END_COUNT:
        return
    threading = sys.modules.get("threading")
    if threading is not None and not is_prewarm:
        threading._shutdown()


def end_logging(is_prewarm):
    """What the exit function of logging does, which runs after those of the program."""
    if LOG_HANDLERS != OUR_LOG_HANDLERS and not is_prewarm:
        sys.modules["logging"].shutdown()


def make_main(path):
    """A new __main__, with what the interpreter sets there when it runs a file."""
    main = types.ModuleType("__main__")
    main.__builtins__ = sys.modules["builtins"]
    main.__annotations__ = {}
    main.__dict__["__file__"] = path
    main.__dict__["__cached__"] = None
    if path:
        main.__loader__ = sys.modules["_frozen_importlib_external"].SourceFileLoader("__main__", path)
    sys.modules["__main__"] = main
    return main


def set_path(path, arguments):
    sys.argv[:] = arguments or [path]
    sys.orig_argv = [sys.executable, *sys.argv]
    extra = os.environ._data.get(b"PYTHONPATH", b"").decode("utf-8", "surrogateescape").split(":")
    sys.path[:] = [os.path.dirname(path) or os.getcwd(), *filter(None, extra), *STANDARD_PATH]
    uncover(sys.path[: -len(STANDARD_PATH)])


def uncover(places):
    """A program's own calendar.py replaces the standard one, as with python3, even if the zygote has imported that."""
    if not COVERED:
        return
    for place in dict.fromkeys(places):
        if place == "/run":  # glovebox puts no module there, and no program has run yet
            continue
        try:
            names = os.listdir(place)
        except OSError:
            continue
        for name in names:
            stem = name.partition(".")[0]
            if stem in COVERED and is_importable(place, name, stem):
                for module in [each for each in sys.modules if each.partition(".")[0] == stem]:
                    del sys.modules[module]


def is_importable(place, name, stem):
    return name == f"{stem}.py" or name.endswith(".so") or os.path.isfile(f"{place}/{name}/__init__.py")


def remember_modules():
    """In the zygote: what comes later belongs to the program."""
    global OUR_MODULES, COVERED, LAST_MAIN
    OUR_MODULES = frozenset(sys.modules)
    COVERED = frozenset(name for name in OUR_MODULES - AT_START
                        if getattr(getattr(sys.modules[name], "__spec__", None), "has_location", False))
    LAST_MAIN = sys.modules["__main__"]


def run(path, arguments, source):
    """Returns the exit code, or INTERRUPTED."""
    main = make_main(path)
    set_path(path, arguments)
    try:
        exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as end:
        return exit_code(end)
    except BaseException as error:
        # The first entry is this function; without it the traceback is that of python3.
        error.__traceback__ = error.__traceback__.tb_next
        not_printed = _glovebox_errors.add_hint(error)
        _glovebox.print_error(type(error), error, error.__traceback__)
        if not_printed is not None:
            print(not_printed, file=sys.stderr)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def exit_code(end):
    """The exit code of sys.exit(code), as the interpreter computes it: see _Py_HandleSystemExit."""
    code = end.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    try:
        sys.stdout.flush()
    except Exception:
        pass
    try:
        print(code, file=sys.stderr)
    except Exception:
        pass
    return 1


def finish(code, is_prewarm=False):
    """What programs can observe of Py_FinalizeEx: waits for threads, calls atexit functions, releases the
    program's objects, so that their files are closed and __del__ runs, and flushes. Prewarming omits what
    can be done only once: the end of threads, and functions that a library has registered."""
    try:
        end_threads(is_prewarm)
        if not is_prewarm or atexit._ncallbacks() == 0:
            atexit._run_exitfuncs()
        end_logging(is_prewarm)
    except BaseException as error:
        error.__traceback__ = error.__traceback__.tb_next
        _glovebox.print_error(type(error), error, error.__traceback__)
    flushed = flush()
    try:
        let_go()
    except BaseException:
        pass
    return code if flush() and flushed or code != 0 else 120


def flush():
    well = True
    for name in ("stdout", "stderr"):
        try:
            stream = getattr(sys, name, None)
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            well = well and name != "stdout"
    return well


def let_go():
    if len(sys._current_frames()) > 1:
        # Daemon threads still use the names, so only files are flushed.
        for thing in gc.get_objects():
            if isinstance(thing, io.IOBase) and not thing.closed:
                thing.flush()
        return
    forget_main()
    if OUR_MODULES:
        forget_modules()
    gc.collect()


def forget_modules():
    fresh = []
    for name in reversed(sys.modules):  # the newest first; touching those of the zygote would copy pages
        if name in OUR_MODULES:
            break
        fresh.append(name)
    for name in fresh:
        module = sys.modules.pop(name, None)
        if type(module) is types.ModuleType and is_users(module):
            clear(module.__dict__)


def is_users(module):
    place = getattr(module, "__file__", None) or "/"
    return not place.startswith("/usr/")


def forget_main():
    sys.last_type = sys.last_value = sys.last_traceback = None
    clear(sys.modules["__main__"].__dict__)


def clear(names):
    """Names with one underscore first, then the others: the order of module_clear in CPython."""
    for name in list(names):
        if name[:1] == "_" and name[:2] != "__":
            names[name] = None
    for name in list(names):
        if name != "__builtins__":
            names[name] = None

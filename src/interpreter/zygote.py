"""The zygote: imports modules that programs need, then forks an interpreter for each request.

Run as `python3 -s /usr/lib/glovebox/zygote.py MODULE…`. It never runs code of a user: everything after
serve() happens in a forked interpreter, behind all walls."""

import sys

AT_START = tuple(sys.modules)  # what every python3 imports before its program
# Modules whose fork hooks our children do not need: they repair locks, lists of threads and files, which are in order in
# a zygote of one thread, and would copy two hundred pages. (random: _glovebox_fresh.)
SPARED = ("threading", "logging", "random", "matplotlib.font_manager")
# Imports whose C libraries have fork handlers (pthread_atfork) that our children do not need: Arrow and its allocator lock
# and unlock, which copies a dozen pages. Handlers of other libraries run, since they may renew random numbers.
UNHOOKED = {"numpy", "pandas", "matplotlib", "matplotlib.pyplot"}
# The modules of the standard library that programs import most; a program that imports seven of them is four times as
# fast. They start no thread, open no file and keep no state but what _glovebox_fresh renews. Not asyncio: it imports
# ssl, whose random numbers take a millisecond to renew in each child.
STANDARD = (
    "argparse", "ast", "base64", "bisect", "calendar", "collections.abc", "concurrent.futures", "contextlib", "copy", "csv",
    "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools", "glob", "hashlib", "heapq", "html", "inspect", "io",
    "itertools", "json", "logging", "math", "operator", "pathlib", "pprint", "queue", "random", "re", "secrets", "shutil", "sqlite3",
    "statistics", "string", "struct", "subprocess", "tempfile", "textwrap", "threading", "time", "traceback", "typing", "unittest",
    "urllib.parse", "uuid", "zipfile", "zoneinfo",
)
OWN_DESCRIPTORS = 5  # 0, 1, 2, the socket, and the folder that is being listed
HERE = sys.path.pop(0)  # so that programs cannot import files of glovebox
OURS = {}  # name of a module of glovebox -> its code, marshalled


def open_streams():
    """Descriptors 0, 1 and 2 become the program's. They are unbuffered (as with python3 -u), so that no output is
    lost when it is killed."""
    import io
    import os

    while os.open("/dev/null", os.O_RDWR) <= 2:
        pass
    os.closerange(4, 16)
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        raw = io.FileIO(number, "w" if number else "r", closefd=False)
        raw.name = f"<{name}>"
        stream = io.TextIOWrapper(raw if number else io.BufferedReader(raw), "utf-8",
                                  "backslashreplace" if number == 2 else "surrogateescape", "\n",
                                  line_buffering=number == 2, write_through=number > 0)
        stream.mode = "w" if number else "r"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def import_native():
    sys.path.insert(0, HERE)
    try:
        return __import__("_glovebox")
    finally:
        sys.path.remove(HERE)


def spare_hooks(is_zygote):
    """Hooks that SPARED modules register from now on are not called while `is_zygote` is not empty. Forks of the
    children call every hook, as usual."""
    import os

    register = os.register_at_fork

    def spared(hook):
        return lambda: None if is_zygote else hook()

    def register_at_fork(**hooks):
        for when, hook in hooks.items():
            if getattr(hook, "__module__", None) in SPARED:
                hooks[when] = spared(hook)
        register(**hooks)

    os.register_at_fork = register_at_fork
    return register


def compile_ours():
    """Called before the imports, so that their objects fill the memory that the compiler frees."""
    import marshal
    import os

    for name in [file[:-3] for file in os.listdir(HERE) if file.startswith("_glovebox_")]:
        with open(f"{HERE}/{name}.py", "rb") as file:
            OURS[name] = marshal.dumps(compile(file.read(), file.name, "exec", dont_inherit=True))


def load_ours(name):
    """Modules of glovebox keep the builtins of now, even if a program changes them later."""
    import builtins
    import marshal
    import types

    module = types.ModuleType(name)
    module.__file__ = f"{HERE}/{name}.py"
    module.__builtins__ = dict(builtins.__dict__)
    sys.modules[name] = module
    exec(marshal.loads(OURS.pop(name)), module.__dict__)
    return module


def load_all(*names):
    for name in names:
        module = load_ours(f"_glovebox_{name}")
    return module


def import_modules(names):
    """Imports the modules; one that cannot be imported is reported to the operator and ends the zygote. A template
    may lack parts of the standard library."""
    import importlib

    for name in STANDARD:
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            return f"import {name}: {type(error).__name__}: {error}"
    return None


def find_leftovers(modules, threads, descriptors):
    """Threads and open files that the imports have left: children would not have them."""
    imports = ", ".join(modules) or "of the standard library"
    if threads != 1:
        return f"the imports {imports} left {threads - 1} threads running"
    if len(descriptors) > OWN_DESCRIPTORS:
        return f"the imports {imports} left files open: descriptors {' '.join(sorted(descriptors))}"
    return None


def bring_home():
    """Copies the home that the template's build has prepared, as every sandbox has it. It has matplotlib's list of fonts,
    which the import would otherwise make again, slowly and with another content."""
    import os
    import shutil

    try:
        shutil.copytree("/usr/share/glovebox/skel", os.environ["HOME"], dirs_exist_ok=True)
    except (OSError, shutil.Error):
        pass


def main():
    import gc
    import os
    import time

    began = time.monotonic_ns()
    gc.disable()
    open_streams()
    compile_ours()
    load_ours("_glovebox_threads").allow_one_thread()
    native = import_native()
    native.private_scratch()
    bring_home()
    is_zygote = [True]
    register_at_fork = spare_hooks(is_zygote)
    modules = sys.argv[1:]
    failure = import_modules(modules)
    os.register_at_fork = register_at_fork
    load_all("text", "mime", "newer", "errors", "display", "ipython", "charts", "magics", "figures", "rehearsal", "cell")
    gc.collect()
    # So that objects of glovebox, which every run touches, lie side by side.
    native.fill_holes()
    kernel = load_all("script", "fresh", "kernel")
    if failure is None:
        kernel.prewarm_in_zygote()
    os.environ.clear()
    gc.collect()
    threads = len(os.listdir("/proc/self/task"))
    if failure is None:
        failure = find_leftovers(modules, threads, os.listdir("/proc/self/fd"))
    gc.freeze()
    native.fill_holes()
    native.settle()
    native.ready(threads, (time.monotonic_ns() - began) // 1000, failure)
    if failure is not None:
        return 1
    try:
        child = native.serve(UNHOOKED.issuperset(modules))
    except BrokenPipeError:  # the service has ended
        return 0
    if child is None:
        return 0
    is_zygote.clear()
    control, prime, _slot, _generation = child
    kernel.live(control, prime)


if __name__ == "__main__":
    sys.exit(main())

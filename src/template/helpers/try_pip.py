# try_pip.py - imports each package that a recipe lists under `pip`, or that was approved, in a process of its own, inside a
# new root that is otherwise complete: try_pip.py LIST; without site (-S) for approved ones. Of several modules of a package
# one must import; packages without modules are skipped.

import ctypes
import glob
import importlib
import importlib.metadata
import shutil
import signal
import struct
import tempfile

SECONDS_EACH = 300  # enough for a busy machine
IMPORTED = "imported"  # a module may end the interpreter with 0


LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446  # system calls, the same numbers on each architecture
WRITE_FILE, TRUNCATE = 1 << 1, 1 << 14
WRITES = WRITE_FILE | 0b1111111110000  # and to make and remove entries of every kind: landlock(7)


def landlock(*arguments):
    return ctypes.CDLL(None).syscall(*arguments)


def landlock_version():
    return landlock(LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)


def write_only_below(folder):
    """A module that is imported must not change the template: no file can be written outside of the folder and /dev."""
    writes = WRITES | (TRUNCATE if landlock_version() >= 3 else 0)
    rules = landlock(LANDLOCK_CREATE, struct.pack("=Q", writes), ctypes.c_size_t(8), 0)
    for place, allowed in ((folder, writes), ("/dev", WRITE_FILE)):
        rule = struct.pack("=Qi", allowed, os.open(place, os.O_PATH))
        if landlock(LANDLOCK_ADD, rules, 1, rule, 0) < 0:
            os._exit(1)
    if landlock(LANDLOCK_RESTRICT, rules, 0) < 0:
        os._exit(1)


def modules_of(name, found):
    """The modules that code would import."""
    return [module for module, owners in found.items()
            if module.isidentifier() and not module.startswith("_") and name in map(spelt, owners)]


def spelt(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def why_none(modules):
    """The error of the first module, if none can be imported."""
    said = None
    for module in modules:
        try:
            importlib.import_module(module)
            return None
        except BaseException as failure:
            said = said or f"import {module}: {type(failure).__name__}: {plain(failure)[:200]}"
    return said


def try_one(modules, answer):
    """Runs in the child."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    signal.alarm(SECONDS_EACH)
    if landlock_version() > 0:
        write_only_below(os.environ["TMPDIR"])
    os.write(answer, (why_none(modules) or IMPORTED).encode())
    os._exit(0)


def start(modules):
    answer, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try_one(modules, write_end)
    os.close(write_end)
    return child, answer


def verdict(answer, status):
    said = os.read(answer, 4096).decode()
    os.close(answer)
    if os.WIFSIGNALED(status):
        said = f"it is not imported within {SECONDS_EACH} s" if os.WTERMSIG(status) == signal.SIGALRM \
            else f"it ends with signal {os.WTERMSIG(status)}"
    return "" if said == IMPORTED else said or f"it ends the interpreter, with {os.WEXITSTATUS(status)}"


def main():
    names = sorted({spelt(re.match(r"\s*[\w.-]*", wanted)[0].strip()) for wanted in json.loads(sys.argv[1])})
    place = "`pip`"
    if sys.flags.no_site and landlock_version() < 1:
        print("approved packages are not imported: this kernel has no Landlock, and they could change files", file=sys.stderr)
        return
    if sys.flags.no_site:
        place = "what is approved (libs/TEMPLATE.approved.yaml)"
        sys.path += glob.glob("/usr/local/lib/python3*/dist-packages") + ["/usr/lib/python3/dist-packages"]
    found = getattr(importlib.metadata, "packages_distributions", dict)()  # since Python 3.10
    running, most = {}, len(os.sched_getaffinity(0))
    for number, name in enumerate([*names, None]):
        while running and (len(running) >= most or name is None):
            child, status = os.wait()
            if child in running:
                package, answer = running.pop(child)
                said = verdict(answer, status)
                if said:
                    give_up(f"package {package} cannot be imported: {said}; take it out of {place}, or add what it needs")
        modules = modules_of(name, found) if name else []
        if modules:
            print(f"trying Python packages, {number} of {len(names)}", file=sys.stderr, flush=True)
            child, answer = start(modules)
            running[child] = name, answer


with tempfile.TemporaryDirectory() as scratch:  # as home, so that files written there do not get into the template
    os.environ["HOME"] = shutil.copytree(os.environ["HOME"], os.path.join(scratch, "home"))
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    main()

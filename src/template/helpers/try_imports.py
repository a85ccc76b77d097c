# try_imports.py - imports the modules of a zygote, inside a new root that is otherwise complete: try_imports.py SET MODULE...
# A zygote imports its set once and forks for each run, so the modules must import, must leave no thread running (fork(2)
# copies only one) and must work in a child. One that does not is reported, and the build fails. Follows _glovebox_threads.py.

import gc
import importlib
import os
import sys
import threading


def give_up(text):
    print(text, file=sys.stderr)
    sys.exit(1)


def threads():
    """The number of threads, also of native code; /proc may be missing in a container."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


allow_one_thread()
name, *modules = sys.argv[1:]
for module in modules:
    try:
        importlib.import_module(module)
    except BaseException as failure:
        give_up(f"zygote set '{name}': import {module} fails: {type(failure).__name__}: {str(failure)[:200]}; take it out of "
                f"the set, or add what it needs")
    if threads() > 1:
        give_up(f"zygote set '{name}': import {module} leaves a thread running, which a forked child would not have; take it "
                f"out of the set: code can still import it")
child = os.fork()
if child == 0:
    try:
        gc.collect()
        for module in modules:
            dir(sys.modules[module])
        os._exit(0)
    except BaseException:
        os._exit(1)
if os.waitpid(child, 0)[1] != 0:
    give_up(f"zygote set '{name}': a forked child of it fails")

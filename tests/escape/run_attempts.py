"""run_attempts.py NAME... - inside a sandbox: runs one attempt after the other, each in a child of its own.

The children are forked, not exec'd, so that what this interpreter has open or holds is seen by them: a forked
zygote is tried as well as a fresh interpreter. A child that hangs is killed, and that is reported."""

import os
import runpy
import signal
import sys
import time

SECONDS = 10


def run_child(name):
    sys.path.insert(0, "/workspace/attempts")
    path = f"/workspace/attempts/{name}.py"
    sys.argv = [path]
    code = 0
    try:
        runpy.run_path(path, run_name="__main__")
    except BaseException as error:  # pylint: disable=broad-except
        print(f"@escape {name} broken {type(error).__name__}: {error}", flush=True)
        code = 1
    sys.stdout.flush()
    os._exit(code)


def wait_for(child):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def main():
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    for name in sys.argv[1:]:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            run_child(name)
        print(f"@ended {name} {wait_for(child)}", flush=True)


main()

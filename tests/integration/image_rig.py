"""Writes interpreters down and lets others go on as they: no daemon, no init, the files of a template.

`python3 THIS-FILE BUILD TEMPLATE`, in a mount namespace of its own, gets a JSON list of steps on stdin and does
them in the template's root: {"run": code} starts an interpreter that can call image(path), {"restore": path} starts
glovebox-restore, {"write": path, "bytes": hex, "restore": path} with an image of its own. Answers with [code,
stdout, stderr] for each; a failed interpreter is the last."""

import ctypes
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

RDONLY, REMOUNT, BIND, PRIVATE, REC = 1, 32, 4096, 1 << 18, 16384
CONTROL = 63
BEGIN = f"""
import os, sys
sys.path.insert(0, "/usr/lib/glovebox")
import _glovebox, _glovebox_fresh
del sys.path[0]
_glovebox.open_channel({CONTROL})

def image(path):
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    kept = _glovebox_fresh.keep()
    restored = _glovebox.image(file, {CONTROL})
    if restored:
        _glovebox.open_channel({CONTROL})
        _glovebox_fresh.renew(kept)
    else:
        os.close(file)
    return restored
"""


def mount(source, target, kind, flags, options=""):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), target.encode(), kind and kind.encode(), ctypes.c_ulong(flags), options.encode()) < 0:
        raise OSError(ctypes.get_errno(), f"mount {target}")


def enter(build, root):
    """As a sandbox has it: the template read-only, our files in memory, places to write in."""
    mount("none", "/", None, PRIVATE | REC)
    mount(root, "/mnt", None, BIND)
    mount("none", "/mnt", None, REMOUNT | BIND | RDONLY)
    mount("tmpfs", "/mnt/usr/lib/glovebox", "tmpfs", 0)
    for file in pathlib.Path(build, "python").iterdir():
        shutil.copy(file, "/mnt/usr/lib/glovebox")
    for place in ("tmp", "workspace", "dev"):
        mount("tmpfs", f"/mnt/{place}", "tmpfs", 0)
    for name in ("null", "zero", "urandom"):
        pathlib.Path("/mnt/dev", name).touch()
        mount(f"/dev/{name}", f"/mnt/dev/{name}", None, BIND)
    os.mkdir("/mnt/dev/shm")
    mount("proc", "/mnt/proc", "proc", 0)
    os.chroot("/mnt")
    os.chdir("/workspace")


def start(command, control, image):
    """Runs it with stdin, stdout and stderr of its own, the control socket and, maybe, an image."""

    def give():
        moved = os.dup(image) if image is not None else None
        if image is None:
            os.dup2(control.fileno(), CONTROL)
        else:
            os.dup2(control.fileno(), 3)
            os.dup2(moved, 4)

    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, close_fds=False, preexec_fn=give,
                          timeout=60, check=False, env={"PATH": "/usr/bin", "MPLBACKEND": "Agg"})
    return [done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")]


def finished(path):
    """The process that writes an image is nobody's child: its end is the end of the file."""
    for _ in range(500):
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 16))
            if file.read(8) == b"GLBEND\n\0":
                return
        time.sleep(.01)
    raise TimeoutError(f"{path} is not finished")


def take(step, control):
    if "run" in step:
        return start(["/usr/bin/python3", "-s", "-c", BEGIN + step["run"]], control, None)
    if "write" in step:
        pathlib.Path(step["write"]).write_bytes(bytes.fromhex(step["bytes"]))
    elif step.get("is_whole", True):
        finished(step["restore"])
    file = os.open(step["restore"], os.O_RDONLY)
    outcome = start(["/usr/lib/glovebox/glovebox-restore"], control, file)
    os.close(file)
    return outcome


def main():
    enter(*sys.argv[1:])
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    done = []
    for step in json.load(sys.stdin):
        done.append(take(step, theirs))
        if done[-1][0] != 0 and "run" in step:
            break
    print(json.dumps(done))
    ours.close()


if __name__ == "__main__":
    main()

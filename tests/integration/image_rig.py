"""Writes interpreters down and lets others go on as they: no daemon, no init, the files of a template.

`python3 THIS-FILE BUILD TEMPLATE`, in a mount namespace of its own, gets a JSON list of steps on stdin and does
them in the template's root: {"run": code} starts an interpreter that can call image(path), {"restore": path} starts
glovebox-restore, after what "change" says (see changed()). Answers with [code, stdout, stderr] for each; a failed
interpreter is the last."""

import ctypes
import json
import os
import pathlib
import shutil
import socket
import struct
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


# contract/image.h
HEAD = struct.Struct("<8s4I12Q")
HEAD_FIELDS = ("magic version machine page areas names runs bytes resume stack thread "
               "vvar vvar_end clock clock_end vdso vdso_end").split()
AREA = struct.Struct("<3Q2H3I3Qq")
AREA_FIELDS = "start end offset kind protect is_filled object name device inode size changed_ns".split()
RUN = struct.Struct("<2Q")
KINDS = {"memory": 1, "stack": 2, "file": 3, "shared": 4, "open": 5}


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
                          timeout=60, check=False, env={"PATH": "/usr/bin", "MPLBACKEND": "Agg", "HOME": "/tmp",
                               "OPENBLAS_NUM_THREADS": "1"})
    return [done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")]


def finished(path):
    """The process that writes an image cannot be waited for: the end of the file is its end."""
    for _ in range(500):
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 16))
            if file.read(8) == b"GLBEND\n\0":
                return
        time.sleep(.01)
    raise TimeoutError(f"{path} is not finished")


def field_of(image, path):
    """Where a field is, and how it is written: head.FIELD, KIND.FIELD or KIND+1.FIELD (the first area of that kind,
    the one behind it), run.start, run.bytes."""
    part, name = path.split(".")
    head = dict(zip(HEAD_FIELDS, HEAD.unpack_from(image)))
    if part == "head":
        return 0, HEAD, HEAD_FIELDS.index(name)
    if part == "run":
        return HEAD.size + head["areas"] * AREA.size + head["names"], RUN, ("start", "bytes").index(name)
    kind, _, more = part.partition("+")
    first = next(at for at in range(HEAD.size, HEAD.size + head["areas"] * AREA.size, AREA.size)
                 if AREA.unpack_from(image, at)[3] == KINDS[kind])
    return first + int(more or 0) * AREA.size, AREA, AREA_FIELDS.index(name)


def changed(image, changes):
    """The image with other numbers: {"cut": bytes} keeps so many, {field: value} sets, {field: "+N"} adds,
    {field: "=FIELD"} copies."""
    image = bytearray(image)
    for path, value in changes.items():
        if path == "cut":
            del image[value:]
            continue
        at, kind, index = field_of(image, path)
        values = list(kind.unpack_from(image, at))
        if isinstance(value, str) and value[0] == "=":
            from_at, from_kind, from_index = field_of(image, value[1:])
            value = from_kind.unpack_from(image, from_at)[from_index]
        elif isinstance(value, str) and value[0] == "+":
            value = values[index] + int(value[1:])
        elif isinstance(value, str):
            value = value.encode()
        values[index] = value
        kind.pack_into(image, at, *values)
    return bytes(image)


def take(step, control):
    if "run" in step:
        return start(["/usr/bin/python3", "-s", "-c", BEGIN + step["run"]], control, None)
    finished(step["restore"])
    file = os.open(step["restore"], os.O_RDONLY)
    if "change" in step:
        os.close(file)
        pathlib.Path("/tmp/changed").write_bytes(changed(pathlib.Path(step["restore"]).read_bytes(), step["change"]))
        file = os.open("/tmp/changed", os.O_RDONLY)
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

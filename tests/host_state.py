"""host_state.py - everything on the host that a sandbox could leave behind, as one comparable value; as a program it
prints that as JSON."""

import contextlib
import json
import os
import pathlib
import re

ID_FIRST, ID_LAST = 0x70000000, 0x7002ffff  # src/model/ids.h
NAMES = ("glovebox-spawne", "glovebox-init", "gloveboxd", "memfd:glovebox")


def processes():
    """{pid: name} of all that is glovebox's: by name, or by an id of its block. The dead are not counted."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, AttributeError):
            status = (entry / "status").read_text(encoding="utf-8", errors="replace")
            name = re.search(r"^Name:\s+(.*)", status, re.MULTILINE).group(1)
            ids = [int(word) for word in re.search(r"^Uid:\s+(.*)", status, re.MULTILINE).group(1).split()]
            state = re.search(r"^State:\s+(\S)", status, re.MULTILINE).group(1)
            if state not in "ZX" and (name in NAMES or any(ID_FIRST <= word <= ID_LAST for word in ids)):
                found[int(entry.name)] = name
    return found


def mounts():
    return [line.split(" ", 4)[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]


def group_folders():
    """Groups of sandboxes and holders, in every hierarchy, wherever a folder named glovebox* lies."""
    found = []
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        if rest.split()[0] in ("cgroup", "cgroup2"):
            for place in pathlib.Path(fields.split()[4]).glob("glovebox*"):
                with contextlib.suppress(OSError):
                    found += [str(item) for item in place.iterdir() if item.is_dir()]
    return found


def ipc_objects():
    """System V objects, POSIX queues and shared memory of the host's own namespace."""
    found = []
    for name in ("shm", "msg", "sem"):
        with contextlib.suppress(OSError):
            found += [f"{name} {line.split()[0]} {line.split()[1]}"
                      for line in pathlib.Path("/proc/sysvipc", name).read_text().splitlines()[1:]]
    for folder in ("/dev/shm", "/dev/mqueue"):
        with contextlib.suppress(OSError):
            found += [f"{folder}/{name}" for name in os.listdir(folder)]
    return found


def network_namespaces():
    """Named ones, and links that a namespace of ours would need to the host."""
    found = []
    with contextlib.suppress(OSError):
        found += os.listdir("/run/netns")
    return found + [f"link {name}" for name in os.listdir("/sys/class/net")]


def files():
    """Files in the places where glovebox could drop some. What stays by design is not counted: the file `slots`,
    in which instances of one user lock their slots, and `state`, the records of a user without a home."""
    found = []
    for folder in ("/run/glovebox", *map(str, pathlib.Path("/tmp").glob(".glovebox-*")), "/tmp"):
        with contextlib.suppress(OSError):
            found += [f"{folder}/{name}" for name in os.listdir(folder)
                      if name not in ("slots", "state") and (folder != "/tmp" or name.startswith("glovebox"))]
    return found


def files_of_sandboxes():
    """What an id of a sandbox owns in the places where everyone may write. No sandbox sees them, so there is none,
    whether it was made just now or by an earlier run of the tests."""
    found = []
    for place in ("/dev/shm", "/dev/mqueue", "/tmp", "/var/tmp", "/run/lock"):
        with contextlib.suppress(OSError):
            for entry in os.scandir(place):
                with contextlib.suppress(OSError):
                    owner = entry.stat(follow_symlinks=False).st_uid
                    if ID_FIRST <= owner <= ID_LAST:
                        found.append(f"{entry.path} (owned by {owner:#x})")
    return found


NEVER = "files of sandboxes"  # counts even if it was there before
PARTS = {"processes": lambda: [f"{name} ({pid})" for pid, name in processes().items()], "mounts": mounts,
         "control groups": group_folders, "IPC objects": ipc_objects, "network": network_namespaces, "files": files,
         NEVER: files_of_sandboxes}


def snapshot():
    return {name: look() for name, look in PARTS.items()}


def left_since(before):
    """What is there now and was not there before, by kind; empty is the promise."""
    now = snapshot()
    grown = {name: sorted(set(now[name]) - set(before[name] if name != NEVER else ())) for name in now}
    return {name: items for name, items in grown.items() if items}


if __name__ == "__main__":
    print(json.dumps(snapshot()))

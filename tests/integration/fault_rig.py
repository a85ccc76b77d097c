"""fault_rig.py - a service whose gloveboxd and glovebox-egress have fault_calls.so loaded, and the plan of each: which of
its calls fails, with what, and for how long."""

import contextlib
import errno
import mmap
import os
import pathlib
import random
import re
import struct
import subprocess
import sys

from conftest import BUILD, TOP

sys.path.append(str(TOP / "tests" / "soak"))

from preloaded_build import preloaded_build  # noqa: E402

ROWS = [(call, descriptor, errors.split()) for call, descriptor, errors in re.findall(
    r"^FAULT\((\w+), +(\w+), +\"([^\"]+)\"\)", (TOP / "tests/integration/fault_calls.def").read_text(), re.MULTILINE)]
SHORT, LOST = 4096, 4097  # as fault_calls.c has them
FOR_MS = 1000
ARM, FAILED, WHERE, COUNTS = struct.Struct("=iiiiq"), 24, slice(32, 32 + 1024), 32 + 1024
PROGRAMS = ("gloveboxd", "glovebox-egress")


class Fault:
    """The `nth` call of the row fails; with `lasts`, so do all that follow for a second."""

    def __init__(self, program, row, nth, error, lasts):
        self.program, self.row, self.nth, self.error, self.lasts = program, row, nth, error, lasts

    @property
    def number(self):
        return {"SHORT": SHORT, "LOST": LOST}.get(self.error) or getattr(errno, self.error)

    @classmethod
    def of(cls, text):
        """From what str() gives."""
        program, what, nth, error, lasts = text.split()
        row = next(i for i, (call, descriptor, _) in enumerate(ROWS) if what == f"{call}.{descriptor}")
        return cls(program, row, int(nth), error, lasts == "lasting")

    def __str__(self):
        call, descriptor, _ = ROWS[self.row]
        return f"{self.program} {call}.{descriptor} {self.nth} {self.error} {'lasting' if self.lasts else 'once'}"


class Plan:
    """The file that the library of one program maps."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(COUNTS + 8 * len(ROWS)))
        path.chmod(0o666)
        with open(path, "r+b") as file:
            self.shared = mmap.mmap(file.fileno(), 0)
        self.disarm()

    def arm(self, fault):
        self.disarm()
        self.shared[FAILED:COUNTS] = bytes(COUNTS - FAILED)
        self.shared[:ARM.size] = ARM.pack(-1, fault.nth, fault.number, FOR_MS if fault.lasts else 0, 0)
        self.shared[:4] = struct.pack("=i", fault.row)

    def disarm(self):
        self.shared[:4] = struct.pack("=i", -1)

    @property
    def failed(self):
        return struct.unpack_from("=i", self.shared, FAILED)[0]

    @property
    def counts(self):
        return struct.unpack_from(f"={len(ROWS)}q", self.shared, COUNTS)

    def where(self):
        """The functions on the way to the first call that failed, ours by name and line."""
        text = bytes(self.shared[WHERE]).split(b"\0")[0].decode()
        names = [named(*frame.split("+")) for frame in text.split()]
        return [name for name, before in zip(names, [None, *names], strict=False) if name != before and name != "libc.so.6"]


def named(library, offset):
    program = library.removesuffix(".real")
    if program not in PROGRAMS:
        return library
    done = subprocess.run(["addr2line", "-fse", BUILD / program, hex(int(offset, 16) - 1)], capture_output=True, text=True, check=False)
    return " ".join(done.stdout.split()) or offset


class Plans:
    """`build` is the folder of programs that follow them."""

    def __init__(self, folder):
        folder.mkdir()
        folder.chmod(0o755)
        self.of = {program: Plan(folder / program) for program in PROGRAMS}
        self.build = pathlib.Path(preloaded_build(BUILD, folder, "fault_calls.so", PROGRAMS, FAULT_PLAN=f"{folder}/{{program}}"))

    def arm(self, fault):
        self.disarm()
        self.of[fault.program].arm(fault)

    def disarm(self):
        for plan in self.of.values():
            plan.disarm()


def every_kind(counts):
    """(program, row, error, lasts) for each kind that was called in a story: `counts` by program. No signals come for a
    whole second."""
    return [(program, row, error, lasts) for program, calls in counts.items() for row, (_, _, errors) in enumerate(ROWS)
            if calls[row] > 0 for error in errors for lasts in (False, True) if not (lasts and error == "EINTR")]


def chosen(counts, number, seed):
    """So many faults: each kind once before one comes again."""
    assert every_kind(counts), "no call was counted: the service of an earlier test does not serve any more"
    chance, faults = random.Random(seed), []
    while len(faults) < number:
        kinds = every_kind(counts)
        chance.shuffle(kinds)
        faults += [Fault(program, row, chance.randint(1, counts[program][row]), error, lasts)
                   for program, row, error, lasts in kinds[:number - len(faults)]]
    return faults


def descriptors(pid):
    """What the process has open: texts without the numbers that differ."""
    found = []
    with contextlib.suppress(OSError):
        for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.append(re.sub(r"\d+", "N", os.readlink(entry)))
    return sorted(found)

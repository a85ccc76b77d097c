#!/usr/bin/python3
"""A table that is wrong is refused, with file and line: complaints.py COMPILER TABLE. TAP on stdout."""

import pathlib
import subprocess
import sys
import tempfile

# What is put in place of the row of getpid, and words of the complaint.
FACTS = [
    ("getpid allow", "reason"),
    ("getpid -- own ids", "no action"),
    ("getpid permit -- own ids", "no action"),
    ("getpid refuse -- own ids", "errors"),
    ("getpid refuse EWRONG -- own ids", "errors"),
    ("getpid allow EPERM -- own ids", "more on the line"),
    ("getpid allow-if -- own ids", "a test begins"),
    ("getpid allow-if arg6 == 0 -- own ids", "a test begins"),
    ("getpid allow-if arg0 = 0 -- own ids", "== or !="),
    ("getpid allow-if arg0 == -- own ids", "missing"),
    ("getpid allow-if arg0 == AF_NOWHERE -- own ids", "no name"),
    ("getpid allow-if arg0 == 0x100000000 -- own ids", "32 bits"),
    ("getpid allow-if arg0 & 1 == 2 -- own ids", "never hold"),
    ("getpid allow-if whole0 != 0 -- own ids", "=="),
    ("getpid allow-if arg0 == 1 -- own ids", "the last row"),
    ("getpid allow -- own ids\ngetpid refuse EPERM -- twice", "the last row"),
    ("getpid allow-if arg0 != 1 -- a\ngetpid fail-if EPERM arg0 == 2 -- b\ngetpid allow -- c", "nothing for this one"),
    ("getpit allow -- own ids", "no call 'getpit'"),
    ("getpid@40 allow -- own ids", "number"),
    ("# getpid is forgotten", "no row decides 'getpid'"),
    ("getpid allow -- own ids\nread refuse EPERM -- again", "stand together"),
    ("include default.syscalls", "include stands first"),
]


def main():
    compiler, table = sys.argv[1], pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
    row = next(line for line in table.splitlines() if line.startswith("getpid "))
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder, "wrong.syscalls")
        for number, (text, words) in enumerate(FACTS, 1):
            place.write_text(table.replace(row, text), encoding="utf-8")
            done = subprocess.run([compiler, "filter", place, f"{folder}/out"], capture_output=True, text=True,
                                  check=False)
            good = done.returncode == 1 and words in done.stderr and "wrong.syscalls:" in done.stderr
            wrong += not good
            print(f"{'' if good else 'not '}ok {number} - {text!r}{'' if good else ': ' + done.stderr.strip()}")
    print(f"1..{len(FACTS)}")
    return wrong > 0


sys.exit(main())

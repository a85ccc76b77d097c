# common.py - shared by the helpers: tools/embed puts it before them.

import hashlib
import json
import os
import re
import sys

LINE_MOST = 300


def plain(text):
    """One line without control characters."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in str(text or "")).split())[:LINE_MOST]


def give_up(text):
    print(text, file=sys.stderr)
    sys.exit(1)


def digest_of(path, kind="sha256"):
    digest = hashlib.new(kind)
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def head_of(wanted):
    return "# for: " + " | ".join(wanted)


def lock_size(text):
    found = re.search(r"^# bytes: (\d+)$", text, re.MULTILINE)
    return int(found.group(1)) if found else 0


def lock_text(what, wanted, total, rows):
    return "\n".join([f"# {what}, written by glovebox template build. What is not listed here is not",
                      "# installed. Remove this file, and the next build resolves the list of the recipe anew.",
                      head_of(wanted), f"# bytes: {total}", *rows, ""])

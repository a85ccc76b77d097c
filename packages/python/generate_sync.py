#!/usr/bin/env python3
"""Writes glovebox/_sync from glovebox/_async: the same code without async and await. --check: fails where they differ."""

import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent / "src/glovebox/_async"
TARGET = SOURCE.parent / "_sync"
CHANGES = [(re.compile(pattern), new) for pattern, new in [
    (r"\basync (def|with|for)\b", r"\1"), (r"\bawait ", ""), (r"\b__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\bAsyncSandboxBase\b", "SandboxBase"), (r"\bAsyncIterator\b", "Iterator"), (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\b_async_stream\b", "_sync_stream"), (r"\basync_client\b", "sync_client"), (r"\baclose\b", "close"),
    (r"\barun\b", "run"), (r"\badownload\b", "download"), (r"\bacall\b", "call"),
    (r"\bacall_function\b", "call_function"), (r"\bamap\b", "map"),
]]


def synchronous(text):
    for pattern, new in CHANGES:
        text = pattern.sub(new, text)
    return text


def main():
    wrong = []
    TARGET.mkdir(exist_ok=True)
    for source in sorted(SOURCE.glob("*.py")):
        target, text = TARGET / source.name, synchronous(source.read_text(encoding="utf-8"))
        if source.name == "__init__.py":
            text = '"""Written by packages/python/generate_sync.py from glovebox._async; change that, not this."""\n'
        else:
            first, _, rest = text.partition("\n")
            text = first + "\n# Written by generate_sync.py from ../_async; change that, not this.\n" + rest
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            wrong.append(target.name)
            if "--check" not in sys.argv:
                target.write_text(text, encoding="utf-8")
    if "--check" in sys.argv and wrong:
        sys.exit(f"not as generate_sync.py writes them: {', '.join(wrong)}")


if __name__ == "__main__":
    main()

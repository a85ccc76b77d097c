#!/usr/bin/python3
"""275 programs as models write them for data work, each as a cell in a sandbox of its own: tests/snippets/run.py BUILD [NAME…]

programs.txt has them, after pages of public galleries in words of our own: the user guides of pandas, NumPy, matplotlib,
seaborn, scikit-learn, SciPy, statsmodels, SymPy, NetworkX, Pillow, polars, duckdb, plotly and altair, and the manuals of
Python's standard library and of the libraries of documents; `more` are habits of notebooks. A program is a head line and its code:

    === name | kind

Kinds: `figure` an image, `table` HTML of a table, `value` a last expression, `text` something printed, `file NAME` an
artifact of that name, `error WORDS` an exception or a limit whose text or note has these words, for what a sandbox refuses: it
has to say what to do instead. Prints a line for each that gives something else, or draws letters that no font has, and ends with
1 below 195 of 200."""

import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "soak"))
from service import Caller, Service  # noqa: E402

LEAST = 195


def programs():
    for part in (HERE / "programs.txt").read_text(encoding="utf-8").split("\n=== ")[1:]:
        head, _, code = part.partition("\n")
        name, _, kind = head.partition(" | ")
        yield name, kind.strip(), code


def is_given(kind, result):
    word, _, wanted = kind.partition(" ")
    if word == "error":
        error = result["error"] or {}
        limit = result["limit"] or {}
        return wanted in f"{error.get('value', '')} {error.get('traceback', '')} {limit.get('message', '')} {result['stderr']}"
    if result["status"] != "ok" or "missing from font" in result["stderr"]:
        return False
    data = [shown["data"] for shown in result["results"]]
    return {"figure": any(name.startswith("image/") for one in data for name in one),
            "table": any("<table" in one.get("text/html", "") for one in data),
            "value": any(shown["main"] for shown in result["results"]),
            "text": bool(result["stdout"].strip()),
            "file": any(artifact["path"] == wanted for artifact in result["artifacts"])}[word]


def main():
    build, *names = sys.argv[1:]
    listed = [row for row in programs() if not names or row[0] in names]
    wrong, started = [], {}
    with tempfile.TemporaryDirectory(prefix="glovebox-snippets-") as folder, Service(build, folder, 8) as service:
        caller = Caller(service.socket)
        for name, kind, code in listed:
            _status, result = caller.run(code=code, mode="cell")
            if "status" not in result or not is_given(kind, result):
                error = result.get("error") or {}
                wrong.append(name)
                said = str(error["value"])[:300] if error else result.get("stderr", "")[-200:]
                print(f"{name}: wanted {kind}, {result.get('status')}: {error.get('name', '')}: {said}")
            else:
                start = result["usage"]["start"]
                started[start] = started.get(start, 0) + 1
    print(f"{len(listed) - len(wrong)} of {len(listed)} programs gave what was expected; sandboxes: {started}")
    return 0 if len(wrong) * 200 <= (200 - LEAST) * len(listed) else 1


if __name__ == "__main__":
    sys.exit(main())

"""A code-review agent that runs the tests: code_review.py FOLDER. The folder is copied into a sandbox; nothing comes back
but the review."""

import io
import pathlib
import sys
import tarfile

import glovebox
from chat import work

ROLE = """You review a Python project in /workspace/project. Read its files, run its tests (python3 -m unittest), and try with
small programs what looks wrong. You may change files, which are a copy. End with a review: each finding with file, line, how
you saw it, and what to do."""


def packed(folder):
    """A tar of the files that a review needs."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for path in sorted(folder.rglob("*")):
            place = path.relative_to(folder)
            if path.is_file() and not path.is_symlink() and not any(part.startswith(".") for part in place.parts):
                tar.add(path, str(place))
    return data.getvalue()


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) == 2 else None
    if folder is None or not folder.is_dir():
        sys.exit(f"{folder} is no folder" if folder else __doc__)
    with glovebox.tools(template="python", network="none", limits={"wall_ms": 60_000}) as tools:
        tools.sandbox.files.make_dir("/workspace/project")
        tools.sandbox.files.upload_dir(packed(folder), "/workspace/project")
        review, executions = work(tools, ROLE, "Review the project.")
    print(review)
    failed = [execution for execution in executions if execution.error is not None]
    print(f"({len(executions)} programs were run, {len(failed)} of them failed)", file=sys.stderr)


if __name__ == "__main__":
    main()

"""Imports and builds templates on this machine, with the program glovebox."""

from __future__ import annotations

import os
import re
import subprocess
import time
from typing import List, Optional

from .errors import UnavailableException
from .progress import Listener, Progress, Wish, listener_of
from .server import program

STEP = re.compile(r"glovebox: template (.+): (.+) \((\d+) of (\d+)\)")  # the lines of `template build` for its steps


def import_template(file: str, *, on_progress: Wish = None) -> None:
    """Imports a template from a file of `glovebox template export`. on_progress: True shows a line, False nothing, a callback
    gets each Progress; by default a line is shown in a terminal or notebook."""
    run_import([], file, os.path.basename(file), listener_of(on_progress, usual=True))


def run_import(options: List[str], file: str, name: str, listener: Optional[Listener]) -> None:
    process = subprocess.Popen([program(), "template", *options, "import", file], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        if listener is not None and os.path.exists(file):
            _watch(process, file, name, listener)
        said = process.communicate()[1]
    except BaseException:
        process.terminate()
        process.communicate()
        raise
    if process.returncode != 0:
        raise UnavailableException(said.decode("utf-8", "replace").strip())


def _watch(process: "subprocess.Popen[bytes]", file: str, name: str, listener: Listener) -> None:
    """Reports how much of the file has been read. The files are checked after that, so the last part is reported at the end."""
    size, done = os.path.getsize(file), 0
    while process.poll() is None:
        at = _position(process.pid, os.path.realpath(file))
        if at is not None:
            done = max(done, min(at, size - 1))
            listener(Progress(f"import {name}", done, size))
        time.sleep(0.1)
    if process.returncode == 0:
        listener(Progress(f"import {name}", size, size))


def _position(process: int, file: str) -> Optional[int]:
    """How many bytes of a file a process has read."""
    try:
        for descriptor in os.listdir(f"/proc/{process}/fd"):
            if os.readlink(f"/proc/{process}/fd/{descriptor}") == file:
                with open(f"/proc/{process}/fdinfo/{descriptor}", encoding="ascii") as text:
                    return int(text.readline().split()[1])
    except (OSError, ValueError, IndexError):
        pass  # the process has just ended
    return None


def build_template(recipe: str, *, on_progress: Wish = None) -> None:
    """Builds a template that comes with glovebox, by name, or one from a recipe file; needs some minutes and a network."""
    listener = listener_of(on_progress, usual=True)
    process = subprocess.Popen([program(), "template", "build", recipe], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    last = steps = 0
    said: List[str] = []
    try:
        assert process.stderr is not None
        for line in process.stderr:
            step = STEP.fullmatch(line.rstrip("\n"))
            if step is None:
                said = [*said[-20:], line]
                continue
            last, steps = int(step[3]), int(step[4])
            if listener is not None:
                listener(Progress(f"build {step[1]}: {step[2]}", last - 1, steps, "steps"))
        process.wait()
    except BaseException:
        process.terminate()
        process.communicate()
        raise
    if process.returncode != 0:
        raise UnavailableException("".join(said).strip())
    if listener is not None:
        listener(Progress(f"build {recipe}", steps, steps, "steps"))

"""Progress of long operations: a line in a terminal or notebook, or a callback."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable, NamedTuple, Optional, Union

WIDTH = 24  # characters of a bar
PAUSES = (0.1, 1.0)  # seconds between two lines, in a terminal and in a notebook


class Progress(NamedTuple):
    """`done` of `total` bytes, files or steps; the last report has done == total. `total` is None if it is not known."""
    what: str
    done: int
    total: Optional[int]
    unit: str = "bytes"

    def __str__(self) -> str:
        divisor, unit = (1 << 20, " MiB") if self.unit == "bytes" else (1, f" {self.unit}")
        if not self.total:
            return f"{self.what} {self.done / divisor:.0f}{unit}"
        full = WIDTH * min(self.done, self.total) // self.total
        return f"{self.what} [{'#' * full}{'.' * (WIDTH - full)}] {self.done / divisor:.0f} of {self.total / divisor:.0f}{unit}"


Listener = Callable[[Progress], Any]
Wish = Union[Listener, bool, None]  # the argument on_progress=: a callback; True: a line; False: nothing


class Bar:
    """One line on stderr that is overwritten, and removed at the end in a terminal."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        is_last = progress.done == progress.total
        if time.monotonic() < self._next and not is_last:
            return
        self._next = time.monotonic() + PAUSES[not self._is_terminal]
        text = "".join(letter if letter.isprintable() else "?" for letter in str(progress))
        if not self._is_terminal:
            sys.stderr.write(f"\r{text}" + "\n" * is_last)
        else:
            sys.stderr.write("\r\033[K" + ("" if is_last else text[:max(self._columns() - 1, 20)]))
        sys.stderr.flush()

    @staticmethod
    def _columns() -> int:
        import shutil
        return shutil.get_terminal_size().columns


def is_watched() -> bool:
    """Whether stderr is shown: in a terminal, or in a notebook."""
    shell = sys.modules.get("IPython")
    return sys.stderr is not None and (sys.stderr.isatty() or shell is not None and "IPKernelApp" in getattr(
        shell.get_ipython(), "config", ()))


def listener_of(wish: Wish, usual: bool = False) -> Optional[Listener]:
    """The callback for on_progress=. usual: without an argument, show a line if stderr is shown."""
    if wish is None:
        wish = usual and is_watched()
    if isinstance(wish, bool):
        return Bar() if wish else None
    return wish

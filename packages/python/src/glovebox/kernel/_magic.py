"""%load_ext glovebox: the cell magic %%sandbox in an ordinary notebook."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any, Dict, Optional, Tuple

from .._sandboxes import Sandbox
from ..errors import GloveboxError
from ..models import Execution, OutputMessage, Result


class Words(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise ValueError(f"%%sandbox: {message}; see %%sandbox --help")


def parser() -> Words:
    made = Words(prog="%%sandbox", description="Runs the cell in a sandbox, which keeps its names for the next one.")
    made.add_argument("--policy", help="what it may do")
    made.add_argument("--template", help="what is installed in it; this-environment: the packages of this notebook")
    made.add_argument("--fresh", action="store_true", help="begin in a sandbox without the names of cells before")
    return made


class Sandboxes:
    """The sandbox for a policy and template."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.opened: Dict[Tuple[Optional[str], Optional[str]], Sandbox] = {}

    def run(self, line: str, cell: str) -> None:
        """Shows the results of the cell; `_sandbox` is its Execution afterwards."""
        try:
            words = parser().parse_args(shlex.split(line))
        except ValueError as error:
            print(error, file=sys.stderr)
            return
        except SystemExit:  # --help has printed it
            return
        kind = (words.policy, words.template)
        if words.fresh:
            self.close(kind)
        try:
            if kind not in self.opened:
                self.opened[kind] = Sandbox(policy=words.policy, template=words.template)
            execution = self.opened[kind].run_code(cell, on_stdout=show_text, on_stderr=show_text, on_result=show_result)
        except GloveboxError as error:
            self.close(kind)
            print(f"{error}; the next cell begins in a fresh sandbox", file=sys.stderr)
            return
        self.shell.user_ns["_sandbox"] = execution
        show_end(execution)

    def close(self, kind: Tuple[Optional[str], Optional[str]]) -> None:
        sandbox = self.opened.pop(kind, None)
        if sandbox is not None:
            try:
                sandbox.kill()
            except GloveboxError:
                pass  # it has ended, or its daemon has

    def close_all(self) -> None:
        for kind in list(self.opened):
            self.close(kind)


def show_text(message: OutputMessage) -> None:
    (sys.stderr if message.error else sys.stdout).write(message.line)


def show_result(result: Result) -> None:
    from IPython.display import display

    display(result)


def show_end(execution: Execution) -> None:
    if execution.error is not None:
        print(execution.error.traceback or f"{execution.error.name}: {execution.error.value}", file=sys.stderr)


def load(shell: Any) -> None:
    import atexit

    sandboxes = Sandboxes(shell)
    shell.register_magic_function(sandboxes.run, "cell", "sandbox")
    shell.glovebox_sandboxes = sandboxes
    atexit.register(sandboxes.close_all)


def unload(shell: Any) -> None:
    sandboxes = shell.__dict__.pop("glovebox_sandboxes", None)
    if sandboxes is not None:
        sandboxes.close_all()
        shell.magics_manager.magics["cell"].pop("sandbox", None)

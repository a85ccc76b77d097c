"""The kernel: each notebook has a sandbox, in which its cells run.

Cells run in a thread, so that an interrupt, which Jupyter sends as SIGINT, reaches the sandbox during a cell. Results may
be hostile: HTML and SVG are shown in frames that run no scripts (models.py)."""

from __future__ import annotations

import json
import os
import queue
import re
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

from ipykernel.kernelbase import Kernel

from .. import __version__
from .._sandboxes import Sandbox
from ..errors import GloveboxError
from ..models import Execution, OutputMessage, Result

DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
COMPLETIONS_MAX = 200
INSPECTION_MAX = 20000  # characters
IDLE_S = 3600  # seconds without a cell, after which the session of an abandoned notebook, or of a killed kernel, ends

# Helper cells for completion and inspection; they leave no variables behind.
COMPLETE = ("print(__import__('json').dumps([match for match in map(__import__('functools').partial("
            "__import__('rlcompleter').Completer(globals()).complete, {text!r}), range({most})) if match]))")
INSPECT = "print(__import__('pydoc').plain(__import__('pydoc').render_doc({name}))[:{most}])"


def traceback_of(error: Any) -> List[str]:
    return (error.traceback or f"{error.name}: {error.value}").splitlines()


class GloveboxKernel(Kernel):
    implementation = "glovebox"
    implementation_version = __version__
    banner = "Python in a sandbox of glovebox: own files only, no network unless its policy says so"
    language_info = {"name": "python", "mimetype": "text/x-python", "file_extension": ".py", "pygments_lexer": "ipython3",
                     "codemirror_mode": {"name": "ipython", "version": 3}}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._sandbox: Optional[Sandbox] = None

    def _opened(self) -> Sandbox:
        if self._sandbox is None:
            self._sandbox = Sandbox(policy=os.environ.get("GLOVEBOX_KERNEL_POLICY"), idle_timeout=IDLE_S,
                                    template=os.environ.get("GLOVEBOX_KERNEL_TEMPLATE"))
        return self._sandbox

    # Cells

    def _run(self, code: str, listen: Callable[[Any], None]) -> Execution:
        """Runs a cell in a thread. Its output is sent from this thread, since only one thread may use a socket of Jupyter. An
        interrupt goes to the interpreter inside, which keeps its variables."""
        sandbox = self._opened()
        said: queue.Queue[Any] = queue.Queue()

        def run() -> None:
            try:
                said.put(sandbox.run_code(code, on_stdout=said.put, on_stderr=said.put, on_result=said.put))
            except BaseException as error:
                said.put(error)

        threading.Thread(target=run, daemon=True).start()
        while True:
            try:
                item = said.get()
                if isinstance(item, Execution):
                    return item
                if isinstance(item, BaseException):
                    raise item
                listen(item)
            except KeyboardInterrupt:
                sandbox.interrupt()

    def _show(self, item: Any) -> None:
        if isinstance(item, OutputMessage):
            self.send_response(self.iopub_socket, "stream", {"name": "stderr" if item.error else "stdout", "text": item.line})
        elif isinstance(item, Result):
            content: Dict[str, Any] = {"data": item._repr_mimebundle_(), "metadata": {}}
            if item.is_main_result:
                content["execution_count"] = self.execution_count
            self.send_response(self.iopub_socket, "execute_result" if item.is_main_result else "display_data", content)

    def _failed(self, name: str, value: str, traceback: List[str], is_silent: bool) -> Dict[str, Any]:
        content = {"ename": name, "evalue": value, "traceback": traceback}
        if not is_silent:
            self.send_response(self.iopub_socket, "error", content)
        return {"status": "error", "execution_count": self.execution_count, **content}

    def do_execute(self, code: str, silent: bool, store_history: bool = True, user_expressions: Optional[Dict[str, str]] = None,
                   allow_stdin: bool = False, **_: Any) -> Dict[str, Any]:
        ignore: Callable[[Any], None] = lambda item: None
        try:
            if code.strip():
                execution = self._run(code, ignore if silent else self._show)
                if execution.error is not None:
                    return self._failed(execution.error.name, execution.error.value, traceback_of(execution.error), silent)
            values = {name: self._value(text) for name, text in (user_expressions or {}).items()}
        except GloveboxError as error:
            hint = "run the cell again: it begins in a fresh sandbox, without the names of this one" if self._sandbox else \
                "no sandbox could be begun; python -m glovebox.kernel install says with which policy and template this kernel does"
            self._sandbox = None  # the next cell gets a fresh one
            says = f"{error}; {hint}"
            return self._failed(type(error).__name__, str(error), [says], silent)
        return {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": values}

    def _value(self, text: str) -> Dict[str, Any]:
        found: List[Result] = []
        execution = self._run(text, lambda item: found.append(item) if isinstance(item, Result) and item.is_main_result else None)
        if execution.error is not None:
            return {"status": "error", "ename": execution.error.name, "evalue": execution.error.value,
                    "traceback": traceback_of(execution.error)}
        return {"status": "ok", "data": found[-1]._repr_mimebundle_() if found else {}, "metadata": {}}

    # Completion and inspection

    def _printed(self, code: str) -> str:
        """The output of a helper cell; empty if it fails, or if there is no sandbox yet."""
        try:
            execution = self._run(code, lambda item: None) if self._sandbox is not None else None
        except GloveboxError:
            return ""
        return "" if execution is None or execution.error is not None else execution.stdout

    def do_complete(self, code: str, cursor_pos: int) -> Dict[str, Any]:
        start, text = name_before(code, cursor_pos)
        matches: List[str] = []
        try:
            found = json.loads(self._printed(COMPLETE.format(text=text, most=COMPLETIONS_MAX)) or "[]") if text else []
            matches = sorted({match.rstrip("(") for match in found if isinstance(match, str)})
        except ValueError:
            pass
        return {"status": "ok", "matches": matches, "cursor_start": start, "cursor_end": cursor_pos, "metadata": {}}

    def do_inspect(self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Any = ()) -> Dict[str, Any]:
        end = cursor_pos
        while end < len(code) and (code[end].isalnum() or code[end] == "_"):
            end += 1
        _, name = name_before(code, end)
        says = self._printed(INSPECT.format(name=name, most=INSPECTION_MAX)) if DOTTED.fullmatch(name) else ""
        return {"status": "ok", "found": bool(says), "data": {"text/plain": says} if says else {}, "metadata": {}}

    def do_is_complete(self, code: str) -> Dict[str, str]:
        from IPython.core.inputtransformer2 import TransformerManager

        status, indent = TransformerManager().check_complete(code)
        return {"status": status, "indent": " " * (indent or 0)} if status == "incomplete" else {"status": status}

    def do_shutdown(self, restart: bool) -> Dict[str, Any]:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            try:
                sandbox.kill()
            except GloveboxError:
                pass  # it has ended, or its daemon has
        return {"status": "ok", "restart": restart}


def name_before(code: str, position: int) -> Tuple[int, str]:
    """Start and text of the dotted name before the cursor."""
    start = position
    while start > 0 and (code[start - 1].isalnum() or code[start - 1] in "._"):
        start -= 1
    return start, code[start:position]

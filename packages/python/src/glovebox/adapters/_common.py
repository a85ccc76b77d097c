"""What the adapters share: one sandbox behind the tools or the executor of a framework, and the tools as functions."""

from __future__ import annotations

import asyncio
import base64
import inspect
import threading
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple, Union

from .._sandboxes import Sandbox
from ..errors import CommandExitException, GloveboxError, TimeoutException
from ..models import Execution
from ..modeltools import Tools, answer_to, clipped, shown, tools

LANGUAGES = {"py": "python", "python3": "python", "ipython": "python", "sh": "bash", "shell": "bash", "zsh": "bash"}


class Workspace:
    """A sandbox that is made at its first use, and the charts that its code has drawn. Frameworks call tools from several
    threads: calls run one after another."""

    def __init__(self, rows: Optional[Tools] = None, sandbox: Optional[Sandbox] = None, **options: Any) -> None:
        self._tools = Tools([], "openai", options, sandbox) if rows is None else rows
        self._lock = threading.RLock()
        self.charts: List[bytes] = []  # PNG, in the order in which they were drawn

    @property
    def sandbox(self) -> Sandbox:
        with self._lock:
            return self._tools.sandbox

    @property
    def last(self) -> Optional[Execution]:
        return self._tools.last

    def close(self) -> None:
        """Ends the sandbox, and so also a call that is under way in another thread."""
        self._tools.close()

    def __deepcopy__(self, _memo: Any) -> Any:
        """Returns itself: if a framework copies its agents, the copies share the sandbox."""
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def call(self, name: str, arguments: Any) -> str:
        """The answer of a tool (Tools.handler)."""
        return self.call_with_charts(name, arguments)[0]

    def call_with_charts(self, name: str, arguments: Any) -> Tuple[str, List[bytes]]:
        with self._lock:
            before = self._tools.last
            text = self._tools.handler(name, arguments)
            after = self._tools.last
            return text, self._keep(after) if after is not None and after is not before else []

    async def acall(self, name: str, arguments: Any) -> str:
        return await asyncio.to_thread(self.call, name, arguments)

    def run_cell(self, code: str, language: str = "python", timeout: Optional[float] = None) -> Execution:
        """Runs a cell; `language` as models write it after ```."""
        name = language.lower() or "python"
        with self._lock:
            execution = self._tools.last = self.sandbox.run_code(code, LANGUAGES.get(name, name), timeout=timeout)
            self._keep(execution)
            return execution

    def run_blocks(self, blocks: Iterable[Tuple[str, str]], timeout: Optional[float] = None) -> Tuple[int, str]:
        """Runs pairs (language, code) one after another until one fails. Returns an exit code (137: a limit) and the text for
        the model."""
        said: List[str] = []
        for language, code in blocks:
            try:
                execution = self.run_cell(code, language, timeout)
            except GloveboxError as error:  # for example, a language that the template does not have
                return 2, "\n".join([*said, answer_to(error)])
            said.append(shown(execution))
            if execution.error is not None:
                return 137 if execution.limit is not None else execution.exit_code or 1, "\n".join(said)
        return 0, "\n".join(said)

    def _keep(self, execution: Execution) -> List[bytes]:
        drawn = [base64.b64decode(result.png) for result in execution.results if result.png is not None]
        self.charts += drawn
        return drawn

    def shell(self, line: Union[str, List[str]], timeout: Optional[float] = None, **options: Any) -> Shell:
        """Runs a line for bash, or a program with its arguments. A failure is returned, not raised."""
        try:
            done = self.sandbox.commands.run(line, timeout=timeout, **options)
            return Shell(done.stdout, done.stderr, done.exit_code)
        except CommandExitException as error:
            return Shell(error.stdout, error.stderr, error.exit_code)
        except TimeoutException as error:
            return Shell("", error.message, None)


class Shell(NamedTuple):
    stdout: str
    stderr: str
    exit_code: Optional[int]  # None: the timeout ended it

    def text(self) -> str:
        """The output for the model, and the exit code if it is not 0."""
        parts = [self.stdout.rstrip("\n"), self.stderr.rstrip("\n"), f"exit code {self.exit_code}" if self.exit_code else ""]
        return clipped("\n".join(part for part in parts if part) or "(no output)")


class Definition(NamedTuple):
    """A tool: its description for the model, and the workspace that runs it."""
    name: str
    description: str
    schema: Dict[str, Any]  # JSON schema of an object whose values are texts, all of them required
    workspace: Workspace

    def call(self, arguments: Any) -> str:
        return self.workspace.call(self.name, arguments)

    async def acall(self, arguments: Any) -> str:
        return await self.workspace.acall(self.name, arguments)

    def function(self) -> Any:
        """A function with the parameters of the tool, for frameworks that inspect the signature of a function."""
        def run(**arguments: str) -> str:
            return self.call(arguments)
        return self._dressed(run)

    def async_function(self) -> Any:
        async def run(**arguments: str) -> str:
            return await self.acall(arguments)
        return self._dressed(run)

    def _dressed(self, function: Any) -> Any:
        properties: Mapping[str, Any] = self.schema["properties"]
        lines = [f"    {name}: {row['description']}" for name, row in properties.items()]
        function.__name__ = function.__qualname__ = self.name
        function.__doc__ = "\n".join([self.description, "", "Args:", *lines])
        function.__annotations__ = {**{name: str for name in properties}, "return": str}
        function.__signature__ = inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=str) for name in properties],
            return_annotation=str)
        return function


class ToolSet(List[Any]):
    """The tools of glovebox.tools() in a framework's own form, as a list: execute_python, run_shell, read_file, write_file
    and list_files (or those in `names`). All share one sandbox, which close() ends: the caller's own (sandbox=), or one
    that is made at its first use with the options of Sandbox. `charts` has the figures drawn so far, as PNG."""

    def __init__(self, make: Callable[[Definition], Any], policy: Optional[str], options: Mapping[str, Any]) -> None:
        rows = tools(policy, "openai", **options)
        self.workspace = Workspace(rows)
        super().__init__(make(Definition(row["function"]["name"], row["function"]["description"],
                                         row["function"]["parameters"], self.workspace)) for row in rows)

    @property
    def sandbox(self) -> Sandbox:
        return self.workspace.sandbox

    @property
    def charts(self) -> List[bytes]:
        return self.workspace.charts

    def close(self) -> None:
        self.workspace.close()

    def __enter__(self) -> ToolSet:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

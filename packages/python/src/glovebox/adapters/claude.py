"""Claude (anthropic): tools for the tool runners, and the agent toolset bash, read, write, edit, glob, grep."""

from __future__ import annotations

import asyncio
import base64
from typing import Any, Callable, Dict, List, Optional

from anthropic import beta_async_tool, beta_tool
from anthropic.lib.tools import ToolError

from ..errors import GloveboxError
from ..modeltools import answer_to, clipped
from ._common import Definition, ToolSet, Workspace

MATCHES_MAX = 100  # paths that glob gives


def tools(policy: Optional[str] = None, **options: Any) -> ToolSet:
    """Tools for client.beta.messages.tool_runner(tools=…) of Anthropic, in a ToolSet. Figures come back as images."""
    return ToolSet(_tool, policy, options)


def async_tools(policy: Optional[str] = None, **options: Any) -> ToolSet:
    """The same for AsyncAnthropic."""
    return ToolSet(_async_tool, policy, options)


def _blocks(definition: Definition, arguments: Dict[str, Any]) -> List[Dict[str, Any]]:
    text, charts = definition.workspace.call_with_charts(definition.name, arguments)
    if text.startswith("error: "):
        raise ToolError(text)
    images = [{"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                           "data": base64.b64encode(chart).decode()}} for chart in charts]
    return [{"type": "text", "text": text}, *images]


def _tool(definition: Definition) -> Any:
    def run(**arguments: Any) -> Any:
        return _blocks(definition, arguments)
    return beta_tool(run, name=definition.name, description=definition.description, input_schema=definition.schema)


def _async_tool(definition: Definition) -> Any:
    async def run(**arguments: Any) -> Any:
        return await asyncio.to_thread(_blocks, definition, arguments)
    return beta_async_tool(run, name=definition.name, description=definition.description, input_schema=definition.schema)


# Inside the sandbox, where its files are: argv is the pattern and the folder.
_GLOB = """import pathlib, sys
found = [each for each in pathlib.Path(sys.argv[2]).glob(sys.argv[1]) if each.exists()]
found.sort(key=lambda each: each.stat().st_mtime, reverse=True)
print("\\n".join(map(str, found[:%d])) or "no matches")""" % MATCHES_MAX


class Toolset(Workspace):
    """agent_toolset_20260401 in one sandbox: Toolset().tools() is for AsyncAnthropic's tool runners, Toolset itself the
    tools= of an environment's worker (client.beta.environments.work.worker), which calls it once for each session. Then
    close() ends the sandboxes of all sessions."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._options = options
        self._others: List[Toolset] = []

    def __call__(self, _context: Any = None) -> List[Any]:
        other = Toolset(**self._options)
        self._others.append(other)
        return other.tools()

    def close(self) -> None:
        for each in self._others:
            each.close()
        super().close()

    def tools(self) -> List[Any]:
        return [_toolset_tool(function) for function in (self._bash, self._read, self._write, self._edit, self._glob, self._grep)]

    def _bash(self, command: Optional[str] = None, restart: Optional[bool] = None, timeout_ms: Optional[int] = None) -> str:
        """Runs a line in a bash that keeps its variables and its folder."""
        if restart:
            self.sandbox.restart_code_context("bash")
            return "bash session restarted"
        if not command:
            raise ToolError("bash: command is required")
        execution = self.run_cell(command, "bash", timeout_ms / 1000 if timeout_ms else None)
        parts = [execution.stdout, execution.stderr, execution.explain() if execution.error is not None else ""]
        text = clipped("\n".join(part.rstrip("\n") for part in parts if part))
        if execution.error is not None:
            raise ToolError(text)
        return text or "(no output)"

    def _read(self, file_path: str, view_range: Optional[List[int]] = None) -> str:
        """Reads a text file, or its lines [first, last]; -1 is the end."""
        text = self._text_of(file_path)
        if view_range:
            if len(view_range) != 2:
                raise ToolError("read: view_range must be [start_line, end_line]")
            first, last = max(0, view_range[0] - 1), view_range[1] if view_range[1] > 0 else None
            text = "\n".join(text.split("\n")[first:last])
        return clipped(text)

    def _text_of(self, path: str) -> str:
        return str(self.sandbox.files.read(path, format="text"))

    def _write(self, file_path: str, content: str) -> str:
        """Writes a whole file."""
        return f"wrote {self.sandbox.files.write(file_path, content).size} bytes to {file_path}"

    def _edit(self, file_path: str, old_string: str, new_string: str, replace_all: Optional[bool] = None) -> str:
        """Replaces a text that occurs exactly once in a file, or all its occurrences."""
        text = self._text_of(file_path)
        count = text.count(old_string) if old_string else 0
        if count == 0:
            raise ToolError(f"edit: old_string not found in {file_path}")
        if count > 1 and not replace_all:
            raise ToolError(f"edit: old_string appears {count} times in {file_path} (must be unique)")
        self.sandbox.files.write(file_path, text.replace(old_string, new_string))
        return f"edited {file_path} ({count} replacement(s))"

    def _glob(self, pattern: str, path: Optional[str] = None) -> str:
        """Lists files that match a pattern, newest first."""
        return self._search(["python3", "-c", _GLOB, pattern, path or "."])

    def _grep(self, pattern: str, path: Optional[str] = None) -> str:
        """Searches files for an extended regular expression."""
        return self._search(["grep", "-rnIE", "-e", pattern, "--", path or "."])

    def _search(self, command: List[str]) -> str:
        done = self.shell(command, 30)
        if done.exit_code not in (0, 1) or done.stderr:
            raise ToolError(clipped(done.stderr) or "it was not found in time")
        return clipped(done.stdout.rstrip("\n")) or "no matches"


def _toolset_tool(function: Callable[..., str]) -> Any:
    async def run(**arguments: Any) -> str:
        try:
            return await asyncio.to_thread(function, **arguments)
        except TypeError as error:  # other parameters
            raise ToolError(f"{name}: {error}") from None
        except GloveboxError as error:
            raise ToolError(f"{name}: {answer_to(error)}") from None
    name = function.__name__.lstrip("_")
    declared = beta_tool(function, name=name)  # reads the parameters
    return beta_async_tool(run, name=name, description=declared.description, input_schema=declared.input_schema)

"""Tools for models: their definitions as OpenAI, Anthropic and Gemini want them, and a handler that runs what they ask for."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Mapping, Optional

from ._sandboxes import Sandbox
from .errors import GloveboxError, InvalidArgumentException, UnavailableException
from .models import Execution
from .server import program

FORMATS = ("openai", "anthropic", "gemini")
ANSWER_MAX = 20_000  # characters that a model is given


def _text(name: str, description: str) -> Dict[str, Any]:
    return {name: {"type": "string", "description": description}}


# name: (what it does, its parameters, all of them required)
_TOOLS: Dict[str, Any] = {
    "execute_python": ("Runs Python in a sandbox. Variables, imports and files stay for the next call; the value of the last "
                       "expression, what is printed, and open figures come back.", _text("code", "The code of this step.")),
    "run_shell": ("Runs a line for bash in the same sandbox.", _text("command", "The line.")),
    "read_file": ("Reads a text file of the same sandbox.", _text("path", "A relative one lies below /workspace.")),
    "write_file": ("Writes a text file in the same sandbox.",
                   {**_text("path", "A relative one lies below /workspace."), **_text("content", "All of its text.")}),
    "list_files": ("Lists a folder of the same sandbox.", _text("path", "The folder; /workspace is where code starts.")),
}


def _program(*arguments: str) -> str:
    import subprocess
    done = subprocess.run([program(), *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise UnavailableException(done.stderr.strip() or f"glovebox {arguments[0]} ended with {done.returncode}")
    return done.stdout


def prompt(policy: Optional[str] = None) -> str:
    """Text for the system prompt: what is installed, what is allowed, and what a result says. It is made by the program
    glovebox of this machine from the policy and its template."""
    return _program("prompt", *(["--policy", policy] if policy else []))


def _constraints(policy: Optional[str]) -> str:
    """What the policy says in a sentence or two, behind the first sentence of the tool of `glovebox manifest`."""
    manifest = json.loads(_program("manifest", "--format", "openai", *(["--policy", policy] if policy else [])))
    return str(manifest[0]["function"]["description"]).partition(". ")[2]


def shown(execution: Execution, limit: int = ANSWER_MAX) -> str:
    """An execution as text for a model: what it printed, its value, how it ended."""
    parts = [execution.stdout]
    parts += [f"[{result}]" if result.text is None else result.text for result in execution.results]
    if execution.stderr:
        parts.append("stderr:\n" + execution.stderr)
    if execution.error is not None:
        parts += [execution.error.traceback, execution.explain()]
    elif execution.denials:
        parts.append(execution.explain())
    parts += [f"file: {artifact.path} ({artifact.size} bytes)" for artifact in execution.artifacts]
    return clipped("\n".join(part.rstrip("\n") for part in parts if part) or "(no output)", limit)


def clipped(text: str, limit: int = ANSWER_MAX) -> str:
    """Head and tail of a text that is too long."""
    if len(text) <= limit:
        return text
    return f"{text[:limit // 2]}\n[{len(text) - limit} characters are left out]\n{text[-(limit // 2):]}"


def answer_to(error: GloveboxError) -> str:
    """What a model is told of its mistake; what is none of its mistakes is raised again."""
    if error.retryable or error.status in (None, 401, 503) and error.code not in ("code", "bad_request"):
        raise error
    return f"error: {error.message}"


class Tools(List[Dict[str, Any]]):
    """A list of tool definitions, as tools() makes it. handler(name, arguments) runs one; answer(call) takes a call as the
    model's interface has it, and gives the message to send back. All of them share one sandbox, made when it is first
    needed; close() ends it."""

    def __init__(self, rows: List[Dict[str, Any]], format: str, options: Mapping[str, Any],
                 sandbox: Optional[Sandbox]) -> None:
        super().__init__(rows)
        self._format, self._options = format, dict(options)
        self._sandbox, self._is_own = sandbox, sandbox is None
        self.last: Optional[Execution] = None  # the last execution, with its pictures

    @property
    def sandbox(self) -> Sandbox:
        if self._sandbox is None:
            self._sandbox = Sandbox(**self._options)
        return self._sandbox

    def close(self) -> None:
        if self._is_own and self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None

    def __enter__(self) -> Tools:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def handler(self, name: str, arguments: Any) -> str:
        """The answer for the model. A mistake of the model gets an answer, too; raises if there is no server."""
        try:
            values = json.loads(arguments) if isinstance(arguments, (str, bytes)) else arguments
        except (ValueError, RecursionError):
            return "error: the arguments are no JSON"
        parameters = _TOOLS[name][1] if name in _TOOLS else None
        if parameters is None:
            return f"error: no tool is named {name!r}; there are {', '.join(_TOOLS)}"
        if not isinstance(values, Mapping) or set(values) != set(parameters) or \
                not all(isinstance(value, str) for value in values.values()):
            return f"error: {name} takes {', '.join(parameters)}, each a text"
        action: Callable[..., str] = getattr(self, "_" + name)
        try:
            return clipped(action(**values))
        except GloveboxError as error:
            return answer_to(error)

    def _execute_python(self, code: str) -> str:
        self.last = self.sandbox.run_code(code)
        return shown(self.last)

    def _run_shell(self, command: str) -> str:
        self.last = self.sandbox.run_code(command, "bash")
        return shown(self.last)

    def _read_file(self, path: str) -> str:
        text: str = self.sandbox.files.read(path, format="text")
        return text

    def _write_file(self, path: str, content: str) -> str:
        info = self.sandbox.files.write(path, content)
        return f"{info.path}: {info.size} bytes"

    def _list_files(self, path: str) -> str:
        rows = self.sandbox.files.list(path)
        return "\n".join(f"{row.path}{'/' if row.type == 'dir' else ''} {row.size}" for row in rows) or "(empty)"

    def answer(self, call: Mapping[str, Any]) -> Dict[str, Any]:
        """OpenAI: a tool call → a message of role tool. Anthropic: a tool_use block → a tool_result block. Gemini: a
        functionCall → a functionResponse part."""
        if self._format == "openai":
            text = self.handler(call["function"]["name"], call["function"]["arguments"])
            return {"role": "tool", "tool_call_id": call["id"], "content": text}
        if self._format == "anthropic":
            text = self.handler(call["name"], call["input"])
            return {"type": "tool_result", "tool_use_id": call["id"], "content": text,
                    "is_error": text.startswith("error: ")}
        return {"functionResponse": {"name": call["name"],
                                     "response": {"output": self.handler(call["name"], call.get("args") or {})}}}


def tools(policy: Optional[str] = None, format: str = "openai", *, names: Optional[List[str]] = None,
          sandbox: Optional[Sandbox] = None, **options: Any) -> Tools:
    """Definitions of execute_python, run_shell, read_file, write_file and list_files (or of those in `names`).
    sandbox: one that is kept by the caller; else one of its own, made with `options`."""
    if format not in FORMATS:
        raise InvalidArgumentException(f"format is one of {', '.join(FORMATS)}, not {format!r}")
    wrong = [name for name in names or [] if name not in _TOOLS]
    if wrong:
        raise InvalidArgumentException(f"no tool is named {wrong[0]!r}; there are {', '.join(_TOOLS)}")
    constraints = _constraints(policy)
    rows = []
    for name in names or list(_TOOLS):
        description, properties = _TOOLS[name]
        if name == "execute_python":
            description = f"{description} {constraints}"
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        rows.append(_definition(format, name, description, schema))
    return Tools(rows, format, {"policy": policy, **options}, sandbox)


def _definition(format: str, name: str, description: str, schema: Dict[str, Any]) -> Dict[str, Any]:
    if format == "openai":
        strict = {**schema, "additionalProperties": False}
        return {"type": "function", "function": {"name": name, "description": description, "parameters": strict,
                                                 "strict": True}}
    if format == "anthropic":
        return {"name": name, "description": description, "input_schema": {**schema, "additionalProperties": False}}
    return {"name": name, "description": description, "parameters": schema}

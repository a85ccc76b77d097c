"""Tools for models: definitions in the formats of OpenAI, Anthropic and Gemini, and a handler that runs the calls."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ._http import hide
from ._sandboxes import Sandbox
from .errors import GloveboxError, InvalidArgumentException, UnavailableException
from .models import Execution
from ._sync.server import Server
from .server import place_of_environment, program

FORMATS = ("openai", "anthropic", "gemini")
SERVER = ("url", "socket", "api_key", "ca", "client")  # options of Sandbox that name the server
ANSWER_MAX = 20_000  # characters of an answer to the model


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


def _names_server(server: Mapping[str, Any]) -> bool:
    return bool(server.get("url") or server.get("client") or not server.get("socket") and place_of_environment()[0])


def prompt(policy: Optional[str] = None, **server: Any) -> str:
    """Text for the system prompt: what is installed, what is allowed, and how to read results. It is made from the answer of
    the server of url= or GLOVEBOX_URL, else by the program glovebox of this machine."""
    if not _names_server(server):
        return _program("prompt", *(["--policy", policy] if policy else []))
    row, values = _policy_of(policy, server)
    template = next((each for each in Server(**server).templates() if each["name"] == values["template"]), {})
    network = values["network"]
    allowed = ["Network: only these destinations; all others are refused:", *(f"- {rule}" for rule in network["allow"])] \
        if isinstance(network, dict) else [_NETWORKS[network]]
    limits = [f"- {name}: {value}" for name, value in values["limits"].items() if value]
    return "\n".join([
        f"You can run code in a sandbox (glovebox, policy {row['name']}). {row['description'] or ''}".rstrip(),
        f"Languages: {', '.join(values['languages'] or template.get('languages', []))}.",
        *([f"Installed: {template['description']}"] if template.get("description") else []),
        "Files: your code starts in /workspace, where the files that you were given lie. What it writes there comes back to "
        "the user. Everything else but /tmp is read-only.", *allowed, "Limits of a run:", *limits,
        "If a run does not end well, its result says which limit ended it, and what was tried and refused, with what to do "
        "instead. Do that; do not try the same again. There are no credentials."]) + "\n"


_NETWORKS = {"none": "Network: none. Do not try to download anything.",
             "loopback": "Network: only the sandbox's own 127.0.0.1. Nothing leads out."}


def _policy_of(policy: Optional[str], server: Mapping[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """A policy's row and effective values, from the server."""
    found = Server(**server).policies()
    name = policy or found["default"]
    row: Dict[str, Any] = next((each for each in found["policies"] if each["name"] == name), {})
    if not row:
        raise InvalidArgumentException(f"the server has no policy {name!r}; it has "
                                       f"{', '.join(each['name'] for each in found['policies'])}")
    return row, row["policy"]


def _amount(value: int, *units: Tuple[int, str]) -> str:
    size, name = next(unit for unit in units if value % unit[0] == 0)
    return f"{value // size} {name}"


def _constraints(policy: Optional[str], server: Mapping[str, Any]) -> str:
    """One or two sentences on the policy, after the first sentence of the description in `glovebox manifest`."""
    if _names_server(server):
        row, values = _policy_of(policy, server)
        wall = _amount(values["limits"]["wall_ms"], (1000, "s"), (1, "ms"))
        memory = _amount(values["limits"]["memory_bytes"], (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))
        network = "Only listed destinations of the network can be reached." if isinstance(values["network"], dict) else "No network."
        return f"{row['description'] or ''} {wall}, {memory} of memory. {network}".strip()
    manifest = json.loads(_program("manifest", "--format", "openai", *(["--policy", policy] if policy else [])))
    return str(manifest[0]["function"]["description"]).partition(". ")[2]


def shown(execution: Execution, limit: int = ANSWER_MAX) -> str:
    """An execution as text for a model: what it printed, its value, how it ended."""
    parts = [execution.stdout]
    parts += [f"[{result}]" if result.text is None else result.text for result in execution.results]
    if execution.stderr:
        parts.append("stderr:\n" + execution.stderr)
    if execution.error is not None:
        if execution.error.name != "ProgramFailed":  # its traceback is in stderr
            parts.append(execution.error.traceback)
        parts.append(execution.explain())
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
    """The text for the model about its mistake; other errors are raised again."""
    if error.retryable or error.status in (None, 401, 503) and error.code not in ("code", "bad_request"):
        raise error
    return f"error: {error.message}"


class Tools(List[Dict[str, Any]]):
    """A list of tool definitions, as tools() makes it. handler(name, arguments) runs a call; answer(call) takes a call in the
    format of the model's interface, and returns the message to send back. All calls share one sandbox, made at its first
    use; close() ends it."""

    def __init__(self, rows: List[Dict[str, Any]], format: str, options: Mapping[str, Any],
                 sandbox: Optional[Sandbox]) -> None:
        super().__init__(rows)
        self._format, self._options = format, hide(dict(options))
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
        """The answer for the model, also to its mistakes; raises if there is no server."""
        try:
            values = json.loads(arguments) if isinstance(arguments, (str, bytes)) else arguments
        except (ValueError, RecursionError):
            return "error: the arguments are no JSON"
        parameters = _TOOLS[name][1] if name in _TOOLS else None
        if parameters is None:
            return f"error: no tool is named {name!r}; there are {', '.join(_TOOLS)}"
        if not isinstance(values, Mapping) or set(values) != set(parameters) or \
                not all(isinstance(value, str) for value in values.values()):
            return f"error: {name} takes {' and '.join(parameters)}, {'a text' if len(parameters) == 1 else 'both texts'}, and nothing else"
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
    sandbox: one that the caller keeps; else a new one, made with `options` (those of Sandbox). The descriptions say what the
    policy allows; that comes from the server of url= or GLOVEBOX_URL, else from the program glovebox of this machine."""
    if format not in FORMATS:
        raise InvalidArgumentException(f"format is one of {', '.join(FORMATS)}, not {format!r}")
    wrong = [name for name in names or [] if name not in _TOOLS]
    if wrong:
        raise InvalidArgumentException(f"no tool is named {wrong[0]!r}; there are {', '.join(_TOOLS)}")
    constraints = _constraints(policy, {name: options[name] for name in SERVER if name in options})
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

"""The values that calls return: executions and their results, files, commands, sandboxes."""

from __future__ import annotations

import base64
import html
import json
import re
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Union

from .errors import InvalidArgumentException

TABLE = "application/vnd.glovebox.table+json"

# attribute of a Result: its MIME type
FORMS = {
    "text": "text/plain", "html": "text/html", "markdown": "text/markdown", "svg": "image/svg+xml", "png": "image/png",
    "jpeg": "image/jpeg", "pdf": "application/pdf", "latex": "text/latex", "json": "application/json",
    "javascript": "application/javascript", "data": TABLE,
}


_ENDINGS = {"jpg": "jpeg", "md": "markdown", "tex": "latex", "txt": "text", "htm": "html"}

# Put before the HTML of a sandbox in a notebook: a frame without scripts would still fetch pictures and fonts.
POLICY = ("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; font-src data:; "
          "style-src 'unsafe-inline'\">")
PIXELS_MAX = 1 << 26  # pixels of a picture that a notebook shows: more would take gigabytes to unpack
BASE64 = re.compile(r"[A-Za-z0-9+/\s]*={0,2}\s*")


def text_of(value: Any) -> Optional[str]:
    """A value of `data` if it is text; code inside can write any JSON there."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


def is_picture(name: str, text: str) -> bool:
    """Whether this can be given to a notebook as PNG or JPEG: base64, and not too large to unpack."""
    if not BASE64.fullmatch(text):
        return False
    if name != "png":
        return True
    try:
        head = base64.b64decode("".join(text[:256].split())[:32])
    except ValueError:
        return False
    size = int.from_bytes(head[16:20], "big") * int.from_bytes(head[20:24], "big")
    return head.startswith(b"\x89PNG\r\n\x1a\n") and 0 < size <= PIXELS_MAX


class Chart(Dict[str, Any]):
    """The numbers of a figure: a dict whose usual keys are attributes, too (docs/cells.md)."""

    @property
    def type(self) -> str:
        return str(self.get("type", "unknown"))

    @property
    def title(self) -> Optional[str]:
        return self.get("title")

    @property
    def elements(self) -> List[Any]:
        return list(self.get("elements") or [])

    def to_dict(self) -> Dict[str, Any]:
        return dict(self)


class Result:
    """One value or display of a cell, in all its formats. Pictures are base64, as in notebooks. All of it was written by code
    inside the sandbox and may be hostile."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        data = dict(row.get("data") or {})
        self.is_main_result = bool(row.get("main"))
        self.text = text_of(data.pop(FORMS["text"], None))
        self.html = text_of(data.pop(FORMS["html"], None))
        self.markdown = text_of(data.pop(FORMS["markdown"], None))
        self.svg = text_of(data.pop(FORMS["svg"], None))
        self.png = text_of(data.pop(FORMS["png"], None))
        self.jpeg = text_of(data.pop(FORMS["jpeg"], None))
        self.pdf = text_of(data.pop(FORMS["pdf"], None))
        self.latex = text_of(data.pop(FORMS["latex"], None))
        self.json: Any = data.pop(FORMS["json"], None)
        self.javascript = text_of(data.pop(FORMS["javascript"], None))
        table = data.pop(TABLE, None)
        self.data: Optional[Dict[str, Any]] = table if isinstance(table, dict) else None
        self.chart: Optional[Chart] = Chart(row["chart"]) if isinstance(row.get("chart"), dict) else None
        self.metadata: Dict[str, Any] = dict(row.get("metadata") or {})
        self.extra: Dict[str, Any] = data

    def formats(self) -> List[str]:
        """Names of its formats."""
        return [name for name in FORMS if getattr(self, name) is not None] + \
            (["chart"] if self.chart is not None else []) + sorted(self.extra)

    def __getitem__(self, name: str) -> Any:
        if name not in FORMS and name != "chart":
            raise KeyError(name)
        return getattr(self, name)

    def save(self, path: str) -> None:
        """Writes one format into a file, chosen by the file's ending: .png, .jpg, .pdf, .svg, .html, .json, .md, .tex or .txt."""
        ending = path.rsplit(".", 1)[-1].lower()
        name = _ENDINGS.get(ending, ending)
        value = getattr(self, name) if name in FORMS else None
        if value is None:
            raise ValueError(f"{path!r}: the result does not have this format; it has {', '.join(self.formats()) or 'none'}")
        data = base64.b64decode(value) if name in ("png", "jpeg", "pdf") else \
            (json.dumps(value) if name == "json" else str(value)).encode("utf-8", "replace")
        with open(path, "wb") as file:
            file.write(data)

    def __str__(self) -> str:
        return self.text if self.text is not None else f"<{', '.join(self.formats()) or 'empty'}>"

    def __repr__(self) -> str:
        return f"Result({self.text!r})" if self.formats() == ["text"] else f"Result({', '.join(self.formats())})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, Any]:
        """For notebooks. HTML and SVG are shown in a frame that runs no scripts and fetches nothing."""
        bundle: Dict[str, Any] = {"text/plain": str(self)}
        for name in ("png", "jpeg"):
            if getattr(self, name) is not None and is_picture(name, getattr(self, name)):
                bundle[FORMS[name]] = getattr(self, name)
        page = self.html if self.html is not None else self.svg
        if page is not None and len(bundle) == 1:
            bundle["text/html"] = ('<iframe sandbox="" style="border:0;width:100%;height:24em" srcdoc="'
                                   f'{html.escape(POLICY + page, quote=True)}"></iframe>')
        return bundle


class OutputMessage(NamedTuple):
    """A piece of output. `timestamp`: nanoseconds, when this program received it."""
    line: str
    timestamp: int
    error: bool

    def __str__(self) -> str:
        return self.line


class Logs(NamedTuple):
    stdout: List[str]
    stderr: List[str]


class ExecutionError(NamedTuple):
    """The exception that ended the code; or, if a limit, a policy or glovebox did, its name and message."""
    name: str
    value: str
    traceback: str


class Limit(NamedTuple):
    name: str
    granted: int
    used: int
    unit: str
    message: str


class Denial(NamedTuple):
    layer: str
    target: str
    times: int
    message: str


class Artifact(NamedTuple):
    """A file that a run has made. `sha256` is the hash of its bytes, `url` the path at the server."""
    path: str
    size: int
    sha256: str
    mime: str
    url: str


_NAMES = {"limit": "LimitExceeded", "denied": "PolicyDenied", "pending_approval": "ApprovalPending",
          "cancelled": "Cancelled", "lost": "Lost"}


class Execution:
    """The result of a run or cell. `raw` has all fields as the server sent them (docs/api.md)."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = dict(raw)
        self.id: str = raw["id"]
        self.status: str = raw["status"]
        self.exit_code: Optional[int] = raw.get("exit_code")
        self.results: List[Result] = [Result(row) for row in raw.get("results") or []]
        self.logs = Logs([raw["stdout"]] if raw.get("stdout") else [], [raw["stderr"]] if raw.get("stderr") else [])
        limit = raw.get("limit")
        self.limit: Optional[Limit] = None if not limit else Limit(
            limit["name"], limit["granted"], limit["used"], limit["unit"], limit["message"])
        self.denials: List[Denial] = [Denial(row["layer"], row["target"], row["count"], row["message"])
                                      for row in raw.get("denials") or []]
        self.artifacts: List[Artifact] = [
            Artifact(row["path"], row["bytes"], row["sha256"], row["mime"], row["url"]) for row in raw.get("artifacts") or []]
        self.usage: Dict[str, Any] = dict(raw.get("usage") or {})
        self.receipt: Optional[str] = raw.get("receipt")
        self.approval: Optional[str] = raw.get("approval")
        cell = raw.get("cell") or {}
        self.execution_count: Optional[int] = cell.get("number")
        self.error: Optional[ExecutionError] = self._error()

    def _error(self) -> Optional[ExecutionError]:
        row = self.raw.get("error")
        if self.limit is not None:
            return ExecutionError("LimitExceeded", self.limit.message, str((row or {}).get("traceback") or ""))
        if row:
            return ExecutionError(str(row.get("name")), str(row.get("value")), str(row.get("traceback") or ""))
        if self.status == "ok":
            return None
        if self.status == "error":
            return ExecutionError("ProgramFailed", f"the program ended with {self._ending()}", "\n".join(self.logs.stderr))
        return ExecutionError(_NAMES.get(self.status, self.status), self.explain(), "")

    def _ending(self) -> str:
        return f"signal {self.raw.get('signal')}" if self.exit_code is None else f"exit code {self.exit_code}"

    @property
    def stdout(self) -> str:
        return "".join(self.logs.stdout)

    @property
    def stderr(self) -> str:
        return "".join(self.logs.stderr)

    @property
    def text(self) -> Optional[str]:
        """The value of the last expression as text; None if it had none."""
        return next((result.text for result in self.results if result.is_main_result), None)

    def explain(self) -> str:
        """How it ended, and what to do, in a few lines for people and models."""
        lines = []
        row = self.raw.get("error")
        if self.limit is not None:
            lines.append(self.limit.message)
        elif row:
            ending = f" ({self._ending()})" if row.get("name") == "ContextEnded" and self.exit_code is not None else ""
            lines.append(f"{row.get('name')}: {row.get('value')}{ending}")
        elif self.status == "error":
            lines.append(f"the program ended with {self._ending()}")
        lines += [denial.message for denial in self.denials[:5]]
        if len(self.denials) > 5:
            lines.append(f"{len(self.denials) - 5} more were refused")
        if self.status == "pending_approval":
            lines.append(f"it waits for a person: glovebox approvals show {self.approval}")
        return "\n".join(lines) or {"ok": "it ended well", "cancelled": "it was cancelled"}.get(self.status, self.status)

    def __repr__(self) -> str:
        return f"Execution(status={self.status!r}, text={self.text!r}, results={self.results!r}, error={self.error!r})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, Any]:
        shown = [result for result in self.results if result.is_main_result] or self.results[-1:]
        return shown[0]._repr_mimebundle_() if shown else {"text/plain": repr(self)}


class FileType(str, Enum):
    FILE = "file"
    DIR = "dir"
    LINK = "link"
    OTHER = "other"


_TYPES = {"file": FileType.FILE, "folder": FileType.DIR, "link": FileType.LINK}


class EntryInfo(NamedTuple):
    """A file or folder of a sandbox. `mode` is its permissions as a number; sizes are bytes. A link has a `target`, and the
    type of that if it leads somewhere. Bytes of a path that are not UTF-8 are surrogates, as in os.fsdecode()."""
    name: str
    path: str
    type: FileType
    size: int
    mode: int
    modified_time: datetime
    target: Optional[str] = None
    target_type: Optional[FileType] = None

    @classmethod
    def of(cls, row: Mapping[str, Any], folder: str = "") -> EntryInfo:
        """Makes one from a row of the server; its path is relative to `folder`."""
        place, coded = str(row["path"]), row.get("path_base64")
        if coded:
            place = base64.b64decode(coded).decode("utf-8", "surrogateescape")
        path = absolute(f"{folder}/{place}" if folder else place)
        return cls(path.rsplit("/", 1)[-1], path,
                   _TYPES.get(str(row["type"]), FileType.OTHER), int(row["bytes"]), int(str(row["mode"]), 8),
                   time_of(str(row["modified_at"])), row.get("target"),
                   _TYPES.get(str(row["target_type"]), FileType.OTHER) if row.get("target_type") else None)


class FilesystemEvent(NamedTuple):
    """A change below a watched folder. `type`: create, write, remove, rename, mode; lost: events were missed."""
    name: str
    type: str


class CommandResult(NamedTuple):
    stdout: str
    stderr: str
    exit_code: int
    error: Optional[str] = None


class Raw(Dict[str, Any]):
    """All fields as the server sent them (docs/sessions.md); repr() does not show them."""

    def __repr__(self) -> str:
        return "{…}"


class ProcessInfo(NamedTuple):
    pid: int
    id: str
    tag: Optional[str]
    cmd: str
    state: str
    raw: Raw

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> ProcessInfo:
        return cls(row["pid"], row["id"], row.get("tag"), str(row["command"]), row["state"], Raw(row))


class PtySize(NamedTuple):
    rows: int
    cols: int


class CodeContext(NamedTuple):
    id: str
    language: str
    cwd: str
    raw: Raw

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> CodeContext:
        return cls(row["id"], row["language"], row["cwd"], Raw(row))


class Checkpoint(NamedTuple):
    id: str
    name: str
    size: int
    raw: Raw

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Checkpoint:
        return cls(row["id"], row["name"], row["bytes"], Raw(row))


class SandboxInfo(NamedTuple):
    """A sandbox as the server knows it. Times are UTC, None where it has none."""
    sandbox_id: str
    state: str
    template: str
    policy: str
    metadata: Dict[str, str]
    started_at: Optional[datetime]
    end_at: Optional[datetime]
    raw: Dict[str, Any]

    def __repr__(self) -> str:
        return f"SandboxInfo({self.sandbox_id!r}, {self.state!r}, template={self.template!r}, policy={self.policy!r})"

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> SandboxInfo:
        return cls(str(row["id"]), str(row["state"]), str(row["template"]["name"]), str(row["policy"]["name"]),
                   dict(row.get("metadata") or {}), time_if_any(row.get("created_at")), time_if_any(row.get("expires_at")), dict(row))


def milliseconds(timeout: float) -> int:
    """A timeout in seconds as the limit wall_ms."""
    if not 0 < timeout < float("inf"):
        raise InvalidArgumentException(f"timeout is a number of seconds above 0, not {timeout}; without it the policy's limit holds")
    return max(1, int(timeout * 1000))


def given(**fields: Any) -> Dict[str, Any]:
    """The fields of a request that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def path_fields(path: str, name: str = "path") -> Dict[str, str]:
    """A path for a request; surrogates stand for bytes that are not UTF-8."""
    try:
        path.encode()
        return {name: path}
    except UnicodeEncodeError:
        return {name + "_base64": base64.b64encode(path.encode("utf-8", "surrogateescape")).decode()}


def absolute(path: str) -> str:
    """The absolute path inside: a relative one is below /workspace; "./" and "//" are removed."""
    whole = path if path.startswith("/") else f"/workspace/{path}"
    return "/" + "/".join(part for part in whole.split("/") if part not in ("", "."))


def time_of(text: str) -> datetime:
    """Parses a time of the server, "2026-01-02T03:04:05.678Z"."""
    return datetime.fromisoformat(text[:-1]).replace(tzinfo=timezone.utc)


def time_if_any(text: Optional[str]) -> Optional[datetime]:
    return time_of(text) if text else None


def bytes_of(row: Mapping[str, Any]) -> bytes:
    """The bytes of an output event."""
    if "data_base64" in row:
        return base64.b64decode(row["data_base64"])
    return str(row["data"]).encode()


def text_fields(name: str, data: Union[str, bytes]) -> Dict[str, str]:
    """The member `name` or, for data that is not UTF-8, `name_base64` of a request."""
    if isinstance(data, str):
        return {name: data}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {name + "_base64": base64.b64encode(data).decode()}

"""DockerSandbox: a class as programs often write it with docker-py, but with a sandbox of glovebox."""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping, Optional, TypedDict, Union

from ._http import hidden
from ._sync.runs import run
from .errors import InvalidArgumentException
from .models import Execution

UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
CPU_PERIOD = 100_000  # microseconds, as Docker has it


class DockerResult(TypedDict):
    exit_code: int
    output: str
    error: str


def bytes_of(size: Union[int, str]) -> int:
    """512m, 1g, or a number of bytes."""
    found = re.fullmatch(r"(\d+)([bkmg]?)b?", str(size).strip().lower())
    if not found:
        raise InvalidArgumentException(f"a size is a number of bytes with b, k, m or g behind it, not {size!r}")
    return int(found[1]) * UNITS[found[2]]


def template_of(image: Optional[str]) -> Optional[str]:
    """Images such as python:3.11-slim mean the policy's template, which has Python; other names are templates."""
    if image is None:
        return None
    name = image.rsplit("/", 1)[-1].split("@")[0].split(":")[0]
    return None if name == "python" else name


class DockerSandbox:
    """Runs code, each time in a sandbox of its own.

    image: python:… or the name of a template. timeout: seconds, else the policy's. mem_limit: as 512m. cpu_quota: of cpu_period
    microseconds. pids_limit: processes. tmpfs: {"/tmp": "size=64m"}; its sizes bound all files together. network: none,
    or policy for what the policy allows. read_only: the root is always read-only; files go below /workspace and /tmp.
    """

    def __init__(self, image: Optional[str] = None, timeout: Optional[float] = None, mem_limit: Union[int, str, None] = None,
                 cpu_quota: Optional[int] = None, read_only: bool = True, tmpfs: Optional[Mapping[str, str]] = None,
                 network: Optional[str] = "none", *, cpu_period: int = CPU_PERIOD, pids_limit: Optional[int] = None,
                 network_disabled: bool = False, environment: Optional[Mapping[str, str]] = None,
                 policy: Optional[str] = None, url: Optional[str] = None, socket: Optional[str] = None,
                 api_key: Optional[str] = None, ca: Optional[str] = None) -> None:
        if not read_only:
            raise InvalidArgumentException("read_only=False is not served: the root of a sandbox is always read-only; write "
                                           "below /workspace or /tmp")
        if network not in (None, "none", "policy"):
            raise InvalidArgumentException(f"network is 'none' or 'policy' (what the policy allows), not {network!r}")
        limits: Dict[str, Any] = {}
        if mem_limit is not None:
            limits["memory_bytes"] = bytes_of(mem_limit)
        if cpu_quota is not None:
            limits["cpus"] = cpu_quota / cpu_period
        if pids_limit is not None:
            limits["processes"] = pids_limit
        sizes = [part[5:] for options in (tmpfs or {}).values() for part in options.split(",") if part.startswith("size=")]
        if sizes:
            limits["disk_bytes"] = sum(bytes_of(size) for size in sizes)
        self.timeout = timeout
        self._options: Dict[str, Any] = {key: value for key, value in (
            ("template", template_of(image)), ("policy", policy), ("limits", limits or None),
            ("network", None if network == "policy" and not network_disabled else "none"),
            ("envs", environment), ("url", url), ("socket", socket), ("api_key", hidden(api_key)), ("ca", ca)) if value is not None}
        self.last: Optional[Execution] = None  # the result of the last run

    def __repr__(self) -> str:
        return f"<DockerSandbox template={self._options.get('template')!r} timeout={self.timeout}>"

    def execute(self, code: str, language: Optional[str] = None) -> DockerResult:
        """exit_code is 137 if a limit ended the code, as with Docker; `error` is its stderr, and why it ended."""
        execution = self.last = run(code, language, timeout=self.timeout, mode="script", **self._options)
        code_of_end = execution.exit_code
        if code_of_end is None:
            code_of_end = 128 + int(execution.raw.get("signal") or 9)
        if execution.limit is not None:
            code_of_end = 137
        said = [execution.stderr] if execution.stderr else []
        if execution.status not in ("ok", "error"):
            said.append(execution.explain())
        return {"exit_code": code_of_end, "output": execution.stdout, "error": "\n".join(said)}

    def cleanup(self) -> None:
        """Does nothing: each sandbox is removed after its run."""

    close = cleanup

    def __enter__(self) -> DockerSandbox:
        return self

    def __exit__(self, *_: Any) -> None:
        self.cleanup()

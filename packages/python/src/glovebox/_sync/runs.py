"""Runs, each in a fresh sandbox."""
# Written by generate_sync.py from ../_async; change that, not this.

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Sequence, Union

from .._defaults import sync_client
from .._http import hidden, path_of
from ..models import Artifact, Execution, ExecutionError, OutputMessage, Result, milliseconds, text_fields
from ..progress import Wish
from .client import Client, meter_of
from .sandbox import follow

Files = Union[Mapping[str, Union[str, bytes]], Iterable[Mapping[str, Any]]]
Code = Union[str, Sequence[str]]


def request_of(code: Code, language: Optional[str], timeout: Optional[float], envs: Optional[Mapping[str, str]],
               files: Optional[Files], stdin: Union[str, bytes, None], options: Dict[str, Any]) -> Dict[str, Any]:
    """The body of POST /v1/runs. Python runs as a cell, so that the last value and figures come back."""
    request: Dict[str, Any] = {"code": code} if isinstance(code, str) else {"command": list(code)}
    request.update(options)
    if language is not None:
        request["language"] = language
    if isinstance(code, str) and language in (None, "python") and "mode" not in request:
        request["mode"] = "cell"
    if timeout:
        request["limits"] = {**request.get("limits", {}), "wall_ms": milliseconds(timeout)}
    if envs:
        request["env"] = dict(envs)
    if files:
        request["files"] = [dict(each) for each in files] if not isinstance(files, Mapping) else [
            {"path": path, **text_fields("content", data)} for path, data in files.items()]
    if stdin is not None:
        request.update(text_fields("stdin", stdin))
    return request


def run(code: Code, language: Optional[str] = None, *, timeout: Optional[float] = None,
               envs: Optional[Mapping[str, str]] = None, files: Optional[Files] = None,
               stdin: Union[str, bytes, None] = None,
               on_stdout: Optional[Callable[[OutputMessage], Any]] = None,
               on_stderr: Optional[Callable[[OutputMessage], Any]] = None,
               on_result: Optional[Callable[[Result], Any]] = None,
               on_error: Optional[Callable[[ExecutionError], Any]] = None,
               request_timeout: Optional[float] = None, client: Optional[Client] = None,
               url: Optional[str] = None, socket: Optional[str] = None, api_key: Optional[str] = None,
               ca: Optional[str] = None, **options: Any) -> Execution:
    """Runs code, or a command as a list, in a fresh sandbox, which is removed afterwards. `files`: {path: content}, or rows
    as in POST /v1/runs; `options`: other keys of that request, such as policy=, limits=, args=, expect=."""
    api_key = hidden(api_key)
    client = client or sync_client(url=url, socket=socket, api_key=api_key, template=options.get("template"), ca=ca)
    request = request_of(code, language, timeout, envs, files, stdin, options)
    if on_stdout or on_stderr or on_result or on_error:
        return follow(client, "/v1/runs", request, on_stdout, on_stderr, on_result, on_error)
    # If the caller is interrupted or cancelled, the connection is closed, and the server cancels the run.
    return Execution(client.call("POST", "/v1/runs", request, timeout=request_timeout))


def download(artifact: Artifact, *, client: Optional[Client] = None, url: Optional[str] = None,
                    socket: Optional[str] = None, api_key: Optional[str] = None, ca: Optional[str] = None,
                    on_progress: Wish = None) -> bytes:
    """The bytes of a file that a run has made, after a check of their hash."""
    import hashlib

    from ..errors import ProtocolError
    api_key = hidden(api_key)
    client = client or sync_client(url=url, socket=socket, api_key=api_key, ca=ca)
    digest = artifact.sha256.split(":", 1)[-1]
    data = (client.request("GET", path_of("v1", "artifacts", digest), meter=meter_of(on_progress, artifact.path))).body
    if hashlib.sha256(data).hexdigest() != digest:
        raise ProtocolError("the bytes of the artifact do not have its hash")
    return data

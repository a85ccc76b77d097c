"""The exceptions. All are GloveboxError; `code` is the code of the server's error (docs/reference/errors.md)."""

from __future__ import annotations

from typing import Any, Dict, Optional, Type


FORKED = "the connection is that of the process that this one was forked from"


class GloveboxError(Exception):
    """A request has no result. A program that fails inside a sandbox is a result, and raises no exception."""

    _code = "internal"
    _fault: Optional[str] = None
    _retryable = False

    def __init__(self, message: str, *, code: Optional[str] = None, status: Optional[int] = None,
                 fault: Optional[str] = None, retryable: Optional[bool] = None, request_id: Optional[str] = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self._code
        self.status = status
        self.fault = fault or self._fault
        self.retryable = self._retryable if retryable is None else retryable
        self.request_id = request_id


class ConnectionLost(GloveboxError):
    """The connection to the server ended before the answer was complete, or there is no server."""

    _code, _fault, _retryable = "connection", "glovebox", True


class ProtocolError(GloveboxError):
    """The answer is not HTTP/1.1, or not an answer of glovebox."""

    _code, _fault = "protocol", "glovebox"


class TimeoutException(GloveboxError):
    """No answer came in the time that the caller gave."""

    _code = "timeout"


class InvalidArgumentException(GloveboxError):
    """The request is not valid, or asks for more than a limit or policy allows."""

    _code, _fault = "bad_request", "caller"


class AuthenticationException(GloveboxError):
    """No valid key was sent, or the key lacks the right."""


class NotFoundException(GloveboxError):
    """The name does not exist."""

    _code = "not_found"


class ConflictException(GloveboxError):
    """The sandbox is not in a state that allows this, such as ended or paused."""


class RateLimitException(GloveboxError):
    """The server is full, or a quota of the key is used up; the same request may succeed later."""


class NotEnoughSpaceException(GloveboxError):
    """The disk or the inodes of the sandbox are used up."""


class UnavailableException(GloveboxError):
    """A wall or a template is missing on the server; its operator must act."""

    _code = "unavailable"


class FunctionError(GloveboxError):
    """The function raised inside the sandbox. `name`, `value` and `traceback` are those of its exception."""

    def __init__(self, name: str, value: str, traceback: str) -> None:
        super().__init__(f"{name}: {value}" if value else name, code="code", fault="code")
        self.name = name
        self.value = value
        self.traceback = traceback


class CommandExitException(GloveboxError):
    """A command ended with another exit code than 0. It has what the command printed."""

    def __init__(self, stdout: str, stderr: str, exit_code: int, error: Optional[str] = None) -> None:
        says = error or stderr.rstrip().rpartition("\n")[2][:200]
        super().__init__(f"command ended with exit code {exit_code}" + (f": {says}" if says else ""), code="exit", fault="code")
        self.stdout = stdout
        self.stderr = stderr
        self.exit_code = exit_code
        self.error = error


SandboxException = GloveboxError  # the name in E2B

_BY_CODE: Dict[str, Type[GloveboxError]] = {
    "bad_request": InvalidArgumentException,
    "limit": InvalidArgumentException,
    "policy": InvalidArgumentException,
    "too_large": InvalidArgumentException,
    "method": InvalidArgumentException,
    "not_acceptable": InvalidArgumentException,
    "media_type": InvalidArgumentException,
    "range": InvalidArgumentException,
    "header_too_large": InvalidArgumentException,
    "no_program": InvalidArgumentException,
    "not_executable": InvalidArgumentException,
    "not_found": NotFoundException,
    "conflict": ConflictException,
    "busy": RateLimitException,
    "quota": RateLimitException,
    "timeout": TimeoutException,
    "unavailable": UnavailableException,
    "unauthorized": AuthenticationException,
    "forbidden": AuthenticationException,
    "full": NotEnoughSpaceException,
    "unreached": ConnectionLost,
}


def error_of(status: int, body: Any) -> GloveboxError:
    """The exception for an answer that is an error."""
    row = body.get("error") if isinstance(body, dict) else None
    if not isinstance(row, dict):
        return ProtocolError(f"HTTP status {status} without glovebox's error; is this glovebox's address?", status=status)
    code = str(row.get("code", "internal"))
    kind = _BY_CODE.get(code, GloveboxError)
    return kind(str(row.get("message", "")), code=code, status=status, fault=row.get("fault"),
                retryable=bool(row.get("retryable")), request_id=row.get("request_id"))

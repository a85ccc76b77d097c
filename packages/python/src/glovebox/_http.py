"""A parser of HTTP/1.1 and server-sent events without input and output, for the clients with and without asyncio."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple
from urllib.parse import quote

from .errors import ProtocolError

HEAD_MAX = 64 * 1024  # bytes of an answer's head, and of one line of chunk sizes or trailers
BODY_MAX = 256 * 1024 * 1024  # bytes of an answer that is read as a whole: no result is larger
USER_AGENT = "glovebox-python"
EVENT_MAX = 64 * 1024 * 1024  # bytes of one event: a result with all its outputs


class Hidden(bytes):
    """Bytes with a key in them, whose repr() hides them from error reports that show the variables of each frame."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes>"


class HiddenText(str):
    """A key, hidden in the same way."""

    def __repr__(self) -> str:
        return "<a key>"


def hidden(key: Optional[str]) -> Optional[str]:
    return HiddenText(key) if key else key


def hide(options: Dict[str, Any]) -> Dict[str, Any]:
    """Hides `api_key` in the options, in place, since every frame of a traceback shows them."""
    if options.get("api_key"):
        options["api_key"] = hidden(options["api_key"])
    return options


class Event(NamedTuple):
    kind: str
    data: Any
    id: Optional[str]


def fresh_name() -> str:
    """128 random bits; importing uuid takes long."""
    return os.urandom(16).hex()


def path_of(*parts: str) -> str:
    """A path of percent-encoded names; surrogates stand for bytes that are not UTF-8, as in os.fsdecode()."""
    return "/" + "/".join(quote(part, safe="", errors="surrogateescape") for part in parts)


def head(method: str, target: str, host: str, headers: Mapping[str, str], size: Optional[int],
         authorization: Optional[Mapping[str, str]] = None) -> Hidden:
    """The head of a request; `size` is that of its body, None for one in chunks."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
    for name, value in headers.items():
        check_header(name, value)
        lines.append(f"{name}: {value}")
    if size is None:
        lines.append("Transfer-Encoding: chunked")
    elif size > 0 or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {size}")
    check_header("Host", host)
    lines += [f"{name}: {value}" for name, value in (authorization or {}).items()]  # checked by Endpoint
    return Hidden(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))


def check_header(name: str, value: str) -> None:
    if value.isascii() and value.isprintable():
        return
    if "\r" in value or "\n" in value or "\0" in value:
        raise ProtocolError(f"header {name} has a line break", fault="caller")  # not its value, which may be a key
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        raise ProtocolError(f"header {name} has characters that HTTP cannot carry", fault="caller") from None


_FIRST_LINE = re.compile(r"(HTTP/1\.[01]) ([0-9]{3})[^\r\n]*\r\n")
_HEADER = re.compile(r"^([^\s:](?:[^\r\n:]*[^\s:])?):([^\r\n]*)\r\n", re.MULTILINE)


class Reader:
    """Reads one answer: feed() takes received bytes, take() returns the available part of the body; `is_whole`: it has ended."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.status = 0
        self.headers: Dict[str, str] = {}
        self.is_whole = False
        self.has_head = False
        self.keeps = True  # the connection can carry another request
        self._buffer = bytearray()
        self._left: Optional[int] = None  # bytes of the body or chunk; None: until the end
        self._chunked = False
        self._phase = "head"

    def feed(self, data: bytes) -> None:
        """Takes bytes from the peer; b"" means that it has closed the connection."""
        if not data:
            if self._phase == "body" and self._left is None and not self._chunked:
                self.is_whole = True
                return
            raise ProtocolError("the connection ended in the middle of an answer")
        self._buffer += data
        while self._phase == "head" and self._read_head():
            pass

    def _line(self) -> Optional[bytes]:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > HEAD_MAX:
                raise ProtocolError("a line of the answer is too long")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[:end + 2]
        return line

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > HEAD_MAX:
                raise ProtocolError("the head of the answer is too long")
            return False
        text = self._buffer[:end + 2].decode("latin-1")
        del self._buffer[:end + 4]
        first = _FIRST_LINE.match(text)
        if first is None:
            raise ProtocolError("the peer does not speak HTTP/1.1")
        version, code = first.groups()
        lines = _HEADER.findall(text, first.end())
        if text.count("\n") != len(lines) + 1:
            raise ProtocolError("a header of the answer is malformed")
        self.status = int(code)
        self.headers = {name.lower(): value.strip(" \t") for name, value in lines}
        if 100 <= self.status < 200 and self.status != 101:
            return True  # the answer itself follows
        self._begin_body(version)
        return False

    def _begin_body(self, version: str) -> None:
        self.has_head = True
        self._phase = "body"
        connection = self.headers.get("connection", "").lower()
        self.keeps = "close" not in connection and (version == "HTTP/1.1" or "keep-alive" in connection)
        length = self.headers.get("content-length")
        if self.method == "HEAD" or self.status in (101, 204, 304):
            self.is_whole = True
        elif self.headers.get("transfer-encoding", "").lower() == "chunked":
            self._chunked, self._left = True, 0
            self._phase = "size"
        elif length is not None:
            if not (length.isascii() and length.isdigit()) or len(length) > 18:
                raise ProtocolError("the length of the answer is not a number")
            self._left = int(length)
            self.is_whole = self._left == 0
        else:
            self.keeps = False

    def take(self) -> bytes:
        """The part of the body that has arrived and was not taken yet."""
        if not self.has_head or self.is_whole and not self._buffer:
            return b""
        if self._chunked:
            return self._take_chunks()
        if self._left is None:
            data = bytes(self._buffer)
            self._buffer.clear()
            return data
        data = bytes(self._buffer[:self._left])
        del self._buffer[:self._left]
        self._left -= len(data)
        self.is_whole = self._left == 0
        return data

    def _take_chunks(self) -> bytes:
        parts: List[bytes] = []
        while not self.is_whole:
            if self._phase == "size":
                line = self._line()
                if line is None:
                    break
                self._left = _hex(line.split(b";", 1)[0].strip())
                self._phase = "data" if self._left else "trailer"
            elif self._phase == "data":
                assert self._left is not None
                if not self._buffer:
                    break
                part = bytes(self._buffer[:self._left])
                del self._buffer[:self._left]
                self._left -= len(part)
                parts.append(part)
                if self._left == 0:
                    self._phase = "end"
            elif self._phase == "end":
                line = self._line()
                if line is None:
                    break
                if line:
                    raise ProtocolError("a chunk of the answer is longer than its stated size")
                self._phase = "size"
            else:  # trailer
                line = self._line()
                if line is None:
                    break
                self.is_whole = not line
        return b"".join(parts)

    def rest(self) -> bytes:
        """The bytes after the head of an upgrade."""
        data = bytes(self._buffer)
        self._buffer.clear()
        return data


def whole_body(answer: bytes) -> Optional[bytes]:
    """The body of an answer that came in one piece and keeps the connection; None for any other, which Reader reads."""
    first, end, body = answer.partition(b"\r\n\r\n")
    lines = first.lower()
    parts = lines.split(b"\r\ncontent-length: ")
    if not end or len(parts) != 2 or not lines.startswith((b"http/1.1 200 ", b"http/1.1 201 ")):
        return None
    if b"\r\ntransfer-encoding" in lines or b"\r\nconnection" in lines:
        return None
    return body if parts[1].partition(b"\r\n")[0] == b"%d" % len(body) else None


def _hex(digits: bytes) -> int:
    if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
        raise ProtocolError("the size of a chunk is not a number")
    return int(digits, 16)


class EventReader:
    """Reads text/event-stream."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.last_id: Optional[str] = None
        self._id: Optional[str] = None

    def feed(self, data: bytes) -> List[Event]:
        self._buffer += data
        events = []
        while True:
            end = self._buffer.find(b"\n\n")
            if end < 0:
                break
            block = bytes(self._buffer[:end])
            del self._buffer[:end + 2]
            event = self._event(block)
            if event is not None:
                events.append(event)
        if len(self._buffer) > EVENT_MAX:
            raise ProtocolError("an event is too long")
        return events

    def _event(self, block: bytes) -> Optional[Event]:
        kind, data, here = "message", [], None
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            value = value[1:] if value.startswith(b" ") else value
            if name == b"event":
                kind = value.decode("ascii", "replace")
            elif name == b"data":
                data.append(value)
            elif name == b"id":
                here = value.decode("ascii", "replace")
        if here is not None:
            self.last_id = here
        return Event(kind, loads(b"\n".join(data)), here) if data else None


def loads(data: bytes) -> Any:
    """JSON of the server. Python itself bounds the digits of numbers and the depth (recursion limit)."""
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the server's answer is not JSON: {type(error).__name__}") from None


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def dumps(value: Any) -> bytes:
    try:
        return _encode(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"the request cannot be written as JSON: {error}", fault="caller") from None


def url_parts(url: str) -> Tuple[str, str, int, str]:
    """(scheme, host, port, path before the routes) of http:// and https:// URLs."""
    from urllib.parse import urlsplit
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # its message may hold a key that was put into the URL
        raise ProtocolError("the URL of the server has an invalid host or port", fault="caller") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ProtocolError("the URL of the server begins with http:// or https:// and names a host", fault="caller")
    if parts.username is not None or parts.password is not None:
        raise ProtocolError("the URL must not contain a key; use api_key= or GLOVEBOX_API_KEY", fault="caller")
    return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80), parts.path.rstrip("/")

"""Requests to a server over kept connections."""
# Written by generate_sync.py from ../_async; change that, not this.

from __future__ import annotations

import time
from typing import Any, Iterator, Callable, Dict, List, Mapping, NamedTuple, Optional, Union
from urllib.parse import urlencode

from .._sync_stream import Stream, in_thread, sleep
from .._endpoint import Endpoint
from .._http import BODY_MAX, USER_AGENT, Event, EventReader, Hidden, Reader, dumps, head, loads, whole_body
from ..errors import ConnectionLost, GloveboxError, ProtocolError, TimeoutException, error_of
from ..progress import Listener, Progress, Wish, listener_of

IDLE_MAX = 32  # connections that are kept open; if more calls run at once, their connections are closed after the call
IDLE_KEPT = 20.0  # seconds; the server closes an idle connection after 30
PIECE = 256 * 1024  # bytes of a file that are sent at a time
RETRY_PAUSES = (0.05, 0.2, 0.5, 1.0, 2.0)  # seconds: a daemon that was killed is restarted within this time

HEADERS = {"User-Agent": USER_AGENT}
JSON_HEADERS = {**HEADERS, "Content-Type": "application/json"}

Body = Union[bytes, Iterator[bytes], None]


class Answer(NamedTuple):
    status: int
    headers: Dict[str, str]
    body: bytes

    def json(self) -> Any:
        return loads(self.body) if self.body else None


def tell(listener: Optional[Callable[[Any], Any]], what: Any) -> None:
    """Calls a callback; awaits it if it is a coroutine function."""
    if listener is not None:
        answer = listener(what)
        if hasattr(answer, "__await__"):
            _ = answer


class Meter:
    """Reports the progress of a transfer to a callback."""

    def __init__(self, listener: Listener, what: str, total: Optional[int] = None) -> None:
        self._listener, self._what = listener, what
        self.total = total
        self._done = 0

    def start(self, total: Optional[int]) -> None:
        self.total, self._done = total, 0

    def add(self, size: int) -> None:
        self._done += size
        if self._done != self.total:
            tell(self._listener, Progress(self._what, self._done, self.total))

    def end(self) -> None:
        tell(self._listener, Progress(self._what, self._done, self._done))


def meter_of(wish: Wish, what: str, total: Optional[int] = None) -> Optional[Meter]:
    listener = listener_of(wish)
    return None if listener is None else Meter(listener, what, total)


class Client:
    """A client of one server. Safe for many coroutines of one loop; a forked process gets connections of its own."""

    def __init__(self, find: Callable[[], Endpoint]) -> None:
        self._find = find  # finds the server, and may start one
        self._endpoint: Optional[Endpoint] = None
        self._idle: List[Stream] = []

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._endpoint!r}>"

    @property
    def endpoint(self) -> Endpoint:
        if self._endpoint is None:
            self._endpoint = self._find()
        return self._endpoint

    # --- connections ---

    def _connection(self) -> Stream:
        while True:
            try:
                stream = self._idle.pop()  # one step: threads share the list, and a lock could be held when a thread forks
            except IndexError:
                return self._connect()
            if time.monotonic() - stream.idle_since < IDLE_KEPT and not stream.is_stale():
                return stream
            stream.close()

    def _connect(self) -> Stream:
        if self._endpoint is not None:
            try:
                return Stream.connect(self._endpoint)
            except ConnectionLost:
                if not self._endpoint.is_private:
                    raise
        self._endpoint = in_thread(self._find)
        return Stream.connect(self._endpoint)

    def _keep(self, stream: Stream) -> None:
        stream.idle_since = time.monotonic()
        if len(self._idle) < IDLE_MAX:
            self._idle.append(stream)
        else:
            stream.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    # --- requests ---

    def open(self, method: str, path: str, *, query: Optional[Mapping[str, str]] = None, json: Any = None,
                   body: Body = None, headers: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None,
                   accepts: int = 0, meter: Optional[Meter] = None) -> Response:
        """Sends a request and reads the head of its answer. Raises an answer that is an error, except with status `accepts`."""
        data = dumps(json) if json is not None else body
        more = JSON_HEADERS if json is not None else HEADERS
        if headers:
            more = {**more, **headers}
        size = len(data) if isinstance(data, bytes) else 0 if data is None else None
        until = None if timeout is None else time.monotonic() + timeout
        stream = self._connection()
        try:
            endpoint = self.endpoint
            target = endpoint.prefix + path + ("?" + urlencode(query) if query else "")
            first = head(method, target, endpoint.authority, more, size, endpoint.authorization())
            if isinstance(data, bytes) and len(data) <= PIECE:
                stream.send(Hidden(first + data))
                if meter is not None:
                    meter.add(len(data))
            else:
                stream.send(first)
                self._send_body(stream, data, meter)
            response = Response(self, stream, Reader(method), until)
            response._read_head()
        except BaseException:
            stream.close()
            raise
        if response.status >= 400 and response.status != accepts:
            raise error_of(response.status, _json_or_none(response.read()))
        return response

    def _post(self, path: str, json: Any, timeout: Optional[float]) -> bytes:
        """The body of the answer to a simple call, by a fast path: one message to the server, and usually one back. Most of the
        cost of open() is code that is no longer in the processor's caches when the answer comes."""
        data = dumps(json)
        until = None if timeout is None else time.monotonic() + timeout
        stream = self._connection()
        try:
            endpoint = self.endpoint
            stream.send(Hidden(b"%b%b%d\r\n\r\n%b" % (f"POST {endpoint.prefix}{path}".encode("latin-1"), endpoint.head(), len(data),
                                                            data)))
            answer = stream.receive(timeout)
            body = whole_body(answer)
            if body is not None:
                self._keep(stream)
                return body
            response = Response(self, stream, Reader("POST"), until)
            response._feed(answer)
            response._read_head()
        except BaseException:
            stream.close()
            raise
        body = response.read()
        if response.status >= 400:
            raise error_of(response.status, _json_or_none(body))
        return body

    def _send_body(self, stream: Stream, data: Body, meter: Optional[Meter]) -> None:
        if isinstance(data, bytes):
            for start in range(0, len(data), PIECE):
                stream.send(data[start:start + PIECE])
                if meter is not None:
                    meter.add(min(PIECE, len(data) - start))
        elif data is not None:
            for piece in data:
                if piece:
                    stream.send(b"%x\r\n%b\r\n" % (len(piece), piece))
                    if meter is not None:
                        meter.add(len(piece))
            stream.send(b"0\r\n\r\n")

    def request(self, method: str, path: str, *, query: Optional[Mapping[str, str]] = None, json: Any = None,
                      body: Body = None, headers: Optional[Mapping[str, str]] = None,
                      timeout: Optional[float] = None, meter: Optional[Meter] = None) -> Answer:
        """The whole answer. An idempotent request is sent again if the connection is lost. `meter` reports the progress of what
        is sent by PUT, else of the answer."""
        may_repeat = method in ("GET", "HEAD", "DELETE") or "Idempotency-Key" in (headers or {})
        for pause in (*RETRY_PAUSES, None) if may_repeat else (None,):
            try:
                response = self.open(method, path, query=query, json=json, body=body, headers=headers,
                                           timeout=timeout, meter=meter if method == "PUT" else None)
                if meter is None:
                    return Answer(response.status, response.headers, response.read())
                if method != "PUT":
                    return Answer(response.status, response.headers, response.read(meter))
                answer = response.read()
                meter.end()
                return Answer(response.status, response.headers, answer)
            except (ConnectionLost, ProtocolError) as error:
                if pause is None or error.status is not None or error.fault == "caller":
                    raise
            sleep(pause)
        raise AssertionError("unreachable")

    def call(self, method: str, path: str, json: Any = None, *, query: Optional[Mapping[str, str]] = None,
                   headers: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None) -> Any:
        """The answer's JSON."""
        if method == "POST" and json is not None and not query and not headers:
            body = self._post(path, json, timeout)
            return loads(body) if body else None
        return (self.request(method, path, query=query, json=json, headers=headers, timeout=timeout)).json()

    def pages(self, path: str, name: str, query: Mapping[str, str]) -> List[Any]:
        """The rows of all pages of a list."""
        found: List[Any] = []
        cursor: Dict[str, str] = {}
        while True:
            answer = self.call("GET", path, query={**query, **cursor})
            found += answer[name]
            if not answer.get("next_cursor"):
                return found
            cursor = {"cursor": str(answer["next_cursor"])}


def _json_or_none(body: bytes) -> Any:
    try:
        return loads(body)
    except GloveboxError:
        return None


class Response:
    """An answer whose body is read piece by piece. Read it to its end, or close() it."""

    def __init__(self, client: Client, stream: Stream, reader: Reader, until: Optional[float]) -> None:
        self._client = client
        self._stream: Optional[Stream] = stream
        self._reader = reader
        self._until = until

    @property
    def status(self) -> int:
        return self._reader.status

    @property
    def headers(self) -> Dict[str, str]:
        return self._reader.headers

    def _receive(self) -> None:
        assert self._stream is not None
        left = None if self._until is None else self._until - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutException("no answer came in time")
        self._feed(self._stream.receive(left))

    def _feed(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
        except ProtocolError as error:
            if data:
                raise
            raise ConnectionLost(error.message) from None

    def _read_head(self) -> None:
        while not self._reader.has_head:
            self._receive()

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes."""
        try:
            while True:
                data = self._reader.take()
                if data:
                    yield data
                if self._reader.is_whole:
                    break
                if not data:
                    self._receive()
        except BaseException:
            self.close()
            raise
        self._finish()

    def metered(self, meter: Optional[Meter]) -> Iterator[bytes]:
        """The body as it comes, with progress reports."""
        if meter is not None:
            meter.start(int(self.headers["content-length"]) if "content-length" in self.headers else None)
        for piece in self.pieces():
            if meter is not None:
                meter.add(len(piece))
            yield piece
        if meter is not None:
            meter.end()

    def read(self, meter: Optional[Meter] = None) -> bytes:
        parts, size = [], 0
        for piece in self.pieces() if meter is None else self.metered(meter):
            parts.append(piece)
            size += len(piece)
            if size > BODY_MAX:
                self.close()
                raise ProtocolError(f"the answer is longer than {BODY_MAX} bytes")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def events(self) -> Iterator[Event]:
        """Server-sent events as they come."""
        reader = EventReader()
        for piece in self.pieces():
            for event in reader.feed(piece):
                yield event

    def _finish(self) -> None:
        stream, self._stream = self._stream, None
        if stream is None:
            return
        if self._reader.keeps and self._reader.is_whole:
            self._client._keep(stream)
        else:
            stream.close()

    def close(self) -> None:
        """Ends the connection; a run that was begun without an idempotency key is cancelled by that."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

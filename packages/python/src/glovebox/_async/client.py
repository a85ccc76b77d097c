"""Requests to a server over kept connections."""

from __future__ import annotations

import time
from typing import Any, AsyncIterator, Callable, Dict, List, Mapping, NamedTuple, Optional, Union
from urllib.parse import urlencode

from .._async_stream import AsyncStream, in_thread, sleep
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

Body = Union[bytes, AsyncIterator[bytes], None]


class Answer(NamedTuple):
    status: int
    headers: Dict[str, str]
    body: bytes

    def json(self) -> Any:
        return loads(self.body) if self.body else None


async def tell(listener: Optional[Callable[[Any], Any]], what: Any) -> None:
    """Calls a callback; awaits it if it is a coroutine function."""
    if listener is not None:
        answer = listener(what)
        if hasattr(answer, "__await__"):
            _ = await answer


class AsyncMeter:
    """Reports the progress of a transfer to a callback."""

    def __init__(self, listener: Listener, what: str, total: Optional[int] = None) -> None:
        self._listener, self._what = listener, what
        self.total = total
        self._done = 0

    def start(self, total: Optional[int]) -> None:
        self.total, self._done = total, 0

    async def add(self, size: int) -> None:
        self._done += size
        if self._done != self.total:
            await tell(self._listener, Progress(self._what, self._done, self.total))

    async def end(self) -> None:
        await tell(self._listener, Progress(self._what, self._done, self._done))


def meter_of(wish: Wish, what: str, total: Optional[int] = None) -> Optional[AsyncMeter]:
    listener = listener_of(wish)
    return None if listener is None else AsyncMeter(listener, what, total)


class AsyncClient:
    """A client of one server. Safe for many coroutines of one loop; a forked process gets connections of its own."""

    def __init__(self, find: Callable[[], Endpoint]) -> None:
        self._find = find  # finds the server, and may start one
        self._endpoint: Optional[Endpoint] = None
        self._idle: List[AsyncStream] = []

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._endpoint!r}>"

    @property
    def endpoint(self) -> Endpoint:
        if self._endpoint is None:
            self._endpoint = self._find()
        return self._endpoint

    # --- connections ---

    async def _connection(self) -> AsyncStream:
        while True:
            try:
                stream = self._idle.pop()  # one step: threads share the list, and a lock could be held when a thread forks
            except IndexError:
                return await self._connect()
            if time.monotonic() - stream.idle_since < IDLE_KEPT and not stream.is_stale():
                return stream
            stream.close()

    async def _connect(self) -> AsyncStream:
        if self._endpoint is not None:
            try:
                return await AsyncStream.connect(self._endpoint)
            except ConnectionLost:
                if not self._endpoint.is_private:
                    raise
        self._endpoint = await in_thread(self._find)
        return await AsyncStream.connect(self._endpoint)

    def _keep(self, stream: AsyncStream) -> None:
        stream.idle_since = time.monotonic()
        if len(self._idle) < IDLE_MAX:
            self._idle.append(stream)
        else:
            stream.close()

    async def aclose(self) -> None:
        while self._idle:
            self._idle.pop().close()

    # --- requests ---

    async def open(self, method: str, path: str, *, query: Optional[Mapping[str, str]] = None, json: Any = None,
                   body: Body = None, headers: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None,
                   accepts: int = 0, meter: Optional[AsyncMeter] = None) -> AsyncResponse:
        """Sends a request and reads the head of its answer. Raises an answer that is an error, except with status `accepts`."""
        data = dumps(json) if json is not None else body
        more = JSON_HEADERS if json is not None else HEADERS
        if headers:
            more = {**more, **headers}
        size = len(data) if isinstance(data, bytes) else 0 if data is None else None
        until = None if timeout is None else time.monotonic() + timeout
        stream = await self._connection()
        try:
            endpoint = self.endpoint
            target = endpoint.prefix + path + ("?" + urlencode(query) if query else "")
            first = head(method, target, endpoint.authority, more, size, endpoint.authorization())
            if isinstance(data, bytes) and len(data) <= PIECE:
                await stream.send(Hidden(first + data))
                if meter is not None:
                    await meter.add(len(data))
            else:
                await stream.send(first)
                await self._send_body(stream, data, meter)
            response = AsyncResponse(self, stream, Reader(method), until)
            await response._read_head()
        except BaseException:
            stream.close()
            raise
        if response.status >= 400 and response.status != accepts:
            raise error_of(response.status, _json_or_none(await response.read()))
        return response

    async def _post(self, path: str, json: Any, timeout: Optional[float]) -> bytes:
        """The body of the answer to a simple call, by a fast path: one message to the server, and usually one back. Most of the
        cost of open() is code that is no longer in the processor's caches when the answer comes."""
        data = dumps(json)
        until = None if timeout is None else time.monotonic() + timeout
        stream = await self._connection()
        try:
            endpoint = self.endpoint
            await stream.send(Hidden(b"%b%b%d\r\n\r\n%b" % (f"POST {endpoint.prefix}{path}".encode("latin-1"), endpoint.head(), len(data),
                                                            data)))
            answer = await stream.receive(timeout)
            body = whole_body(answer)
            if body is not None:
                self._keep(stream)
                return body
            response = AsyncResponse(self, stream, Reader("POST"), until)
            response._feed(answer)
            await response._read_head()
        except BaseException:
            stream.close()
            raise
        body = await response.read()
        if response.status >= 400:
            raise error_of(response.status, _json_or_none(body))
        return body

    async def _send_body(self, stream: AsyncStream, data: Body, meter: Optional[AsyncMeter]) -> None:
        if isinstance(data, bytes):
            for start in range(0, len(data), PIECE):
                await stream.send(data[start:start + PIECE])
                if meter is not None:
                    await meter.add(min(PIECE, len(data) - start))
        elif data is not None:
            async for piece in data:
                if piece:
                    await stream.send(b"%x\r\n%b\r\n" % (len(piece), piece))
                    if meter is not None:
                        await meter.add(len(piece))
            await stream.send(b"0\r\n\r\n")

    async def request(self, method: str, path: str, *, query: Optional[Mapping[str, str]] = None, json: Any = None,
                      body: Body = None, headers: Optional[Mapping[str, str]] = None,
                      timeout: Optional[float] = None, meter: Optional[AsyncMeter] = None) -> Answer:
        """The whole answer. An idempotent request is sent again if the connection is lost. `meter` reports the progress of what
        is sent by PUT, else of the answer."""
        may_repeat = method in ("GET", "HEAD", "DELETE") or "Idempotency-Key" in (headers or {})
        for pause in (*RETRY_PAUSES, None) if may_repeat else (None,):
            try:
                response = await self.open(method, path, query=query, json=json, body=body, headers=headers,
                                           timeout=timeout, meter=meter if method == "PUT" else None)
                if meter is None:
                    return Answer(response.status, response.headers, await response.read())
                if method != "PUT":
                    return Answer(response.status, response.headers, await response.read(meter))
                answer = await response.read()
                await meter.end()
                return Answer(response.status, response.headers, answer)
            except (ConnectionLost, ProtocolError) as error:
                if pause is None or error.status is not None or error.fault == "caller":
                    raise
            await sleep(pause)
        raise AssertionError("unreachable")

    async def call(self, method: str, path: str, json: Any = None, *, query: Optional[Mapping[str, str]] = None,
                   headers: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None) -> Any:
        """The answer's JSON."""
        if method == "POST" and json is not None and not query and not headers:
            body = await self._post(path, json, timeout)
            return loads(body) if body else None
        return (await self.request(method, path, query=query, json=json, headers=headers, timeout=timeout)).json()

    async def pages(self, path: str, name: str, query: Mapping[str, str]) -> List[Any]:
        """The rows of all pages of a list."""
        found: List[Any] = []
        cursor: Dict[str, str] = {}
        while True:
            answer = await self.call("GET", path, query={**query, **cursor})
            found += answer[name]
            if not answer.get("next_cursor"):
                return found
            cursor = {"cursor": str(answer["next_cursor"])}


def _json_or_none(body: bytes) -> Any:
    try:
        return loads(body)
    except GloveboxError:
        return None


class AsyncResponse:
    """An answer whose body is read piece by piece. Read it to its end, or aclose() it."""

    def __init__(self, client: AsyncClient, stream: AsyncStream, reader: Reader, until: Optional[float]) -> None:
        self._client = client
        self._stream: Optional[AsyncStream] = stream
        self._reader = reader
        self._until = until

    @property
    def status(self) -> int:
        return self._reader.status

    @property
    def headers(self) -> Dict[str, str]:
        return self._reader.headers

    async def _receive(self) -> None:
        assert self._stream is not None
        left = None if self._until is None else self._until - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutException("no answer came in time")
        self._feed(await self._stream.receive(left))

    def _feed(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
        except ProtocolError as error:
            if data:
                raise
            raise ConnectionLost(error.message) from None

    async def _read_head(self) -> None:
        while not self._reader.has_head:
            await self._receive()

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        try:
            while True:
                data = self._reader.take()
                if data:
                    yield data
                if self._reader.is_whole:
                    break
                if not data:
                    await self._receive()
        except BaseException:
            await self.aclose()
            raise
        self._finish()

    async def metered(self, meter: Optional[AsyncMeter]) -> AsyncIterator[bytes]:
        """The body as it comes, with progress reports."""
        if meter is not None:
            meter.start(int(self.headers["content-length"]) if "content-length" in self.headers else None)
        async for piece in self.pieces():
            if meter is not None:
                await meter.add(len(piece))
            yield piece
        if meter is not None:
            await meter.end()

    async def read(self, meter: Optional[AsyncMeter] = None) -> bytes:
        parts, size = [], 0
        async for piece in self.pieces() if meter is None else self.metered(meter):
            parts.append(piece)
            size += len(piece)
            if size > BODY_MAX:
                await self.aclose()
                raise ProtocolError(f"the answer is longer than {BODY_MAX} bytes")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def events(self) -> AsyncIterator[Event]:
        """Server-sent events as they come."""
        reader = EventReader()
        async for piece in self.pieces():
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

    async def aclose(self) -> None:
        """Ends the connection; a run that was begun without an idempotency key is cancelled by that."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

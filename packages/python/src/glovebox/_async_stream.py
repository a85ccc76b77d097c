"""A connection to the server, for programs with asyncio."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Awaitable, Callable, Iterable, List, Optional, TypeVar

from ._endpoint import Endpoint
from .errors import ConnectionLost, TimeoutException

CONNECT_SECONDS = 10.0
RECEIVE_BYTES = 256 * 1024

sleep = asyncio.sleep
T = TypeVar("T")


class AsyncLock:
    """Nothing: between two awaits no other coroutine runs."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: Any) -> None:
        return None


async def in_thread(function: Callable[[], T]) -> T:
    """Beside the loop: what waits for a process."""
    return await asyncio.get_running_loop().run_in_executor(None, function)


async def in_order(function: Callable[[Any], Awaitable[T]], items: Iterable[Any], at_once: int) -> List[T]:
    """What it gives for each item; the first exception cancels the others."""
    gate = asyncio.Semaphore(at_once)

    async def one(item: Any) -> T:
        async with gate:
            return await function(item)
    tasks = [asyncio.ensure_future(one(item)) for item in items]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def owner() -> object:
    """Who may use a kept connection: this process, in this loop."""
    return os.getpid(), id(asyncio.get_running_loop())


class AsyncStream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.owner = owner()
        self.idle_since = 0.0

    @classmethod
    async def connect(cls, endpoint: Endpoint) -> AsyncStream:
        try:
            if endpoint.socket is not None:
                opening: Any = asyncio.open_unix_connection(endpoint.socket)
            else:
                opening = asyncio.open_connection(endpoint.host, endpoint.port, ssl=endpoint.context())
            reader, writer = await asyncio.wait_for(opening, CONNECT_SECONDS)
        except asyncio.TimeoutError:
            raise ConnectionLost(f"connect to {endpoint!r}: no answer in {CONNECT_SECONDS:g} s") from None
        except OSError as error:
            raise ConnectionLost(f"connect to {endpoint!r}: {error}") from error
        return cls(reader, writer)

    async def send(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise ConnectionLost(f"the server took no more: {error}") from error

    async def receive(self, timeout: Optional[float] = None) -> bytes:
        """What came, b"" at the end."""
        try:
            if timeout is None:
                return await self._reader.read(RECEIVE_BYTES)
            return await asyncio.wait_for(self._reader.read(RECEIVE_BYTES), max(timeout, 0.000001))
        except asyncio.TimeoutError:
            raise TimeoutException("no answer came in time") from None
        except OSError as error:
            raise ConnectionLost(f"the connection ended: {error}") from error

    def is_stale(self) -> bool:
        """Whether the server has closed it, or it belongs to another loop."""
        return self.owner != owner() or self._reader.at_eof() or self._writer.is_closing()

    def close(self) -> None:
        try:
            self._writer.close()
        except RuntimeError:
            pass  # its loop is closed, and the socket with it

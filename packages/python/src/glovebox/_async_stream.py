"""A connection to the server, for programs with asyncio."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any, Awaitable, Callable, Iterable, List, Optional, Tuple, TypeVar

from ._endpoint import Endpoint
from .errors import FORKED, ConnectionLost, TimeoutException

CONNECT_SECONDS = 10.0
BACKLOG_SECONDS = 0.005  # until a full backlog is tried again
RECEIVE_BYTES = 256 * 1024

sleep = asyncio.sleep
T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    """Runs a function that waits for a process in a thread, not in the loop."""
    return await asyncio.get_running_loop().run_in_executor(None, function)


async def in_order(function: Callable[[Any], Awaitable[T]], items: Iterable[Any], at_once: int) -> List[T]:
    """The function's results for all items; the first exception cancels the others."""
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


def _running_loop() -> Optional[asyncio.AbstractEventLoop]:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def owner() -> Tuple[int, int]:
    """A kept connection may be used only by the same process in the same loop."""
    return os.getpid(), id(asyncio.get_running_loop())


async def _open_unix(path: str) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """asyncio treats the EAGAIN of a full backlog as a connection in progress, which it is not for Unix sockets: unix(7)."""
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        peer.setblocking(False)
        while True:
            try:
                peer.connect(path)
                return await asyncio.open_unix_connection(sock=peer)
            except BlockingIOError:
                await asyncio.sleep(BACKLOG_SECONDS)
    except BaseException:
        peer.close()
        raise


class AsyncStream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self.owner = owner()
        self.idle_since = 0.0

    @classmethod
    async def connect(cls, endpoint: Endpoint) -> AsyncStream:
        try:
            if endpoint.socket is not None:
                opening: Any = _open_unix(endpoint.socket)
            else:
                opening = asyncio.open_connection(endpoint.host, endpoint.port, ssl=endpoint.context())
            reader, writer = await asyncio.wait_for(opening, CONNECT_SECONDS)
        except asyncio.TimeoutError:
            raise endpoint.unreached(TimeoutError(f"no answer in {CONNECT_SECONDS:g} s")) from None
        except (OSError, UnicodeError) as error:  # UnicodeError: the host is not a valid name
            raise endpoint.unreached(error) from error
        return cls(reader, writer)

    async def send(self, data: bytes) -> None:
        if self.owner[0] != os.getpid():
            raise ConnectionLost(FORKED)
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise ConnectionLost(f"the server took no more: {error}") from error

    async def receive(self, timeout: Optional[float] = None) -> bytes:
        """The next bytes, b"" at the end."""
        if self.owner[0] != os.getpid():  # bytes that a forked child reads would be missing in the parent
            raise ConnectionLost(FORKED)
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
            if self.owner[0] != os.getpid():
                self._release()
            elif self.owner[1] == id(_running_loop()):
                self._writer.close()
            else:
                self._loop.call_soon_threadsafe(self._writer.close)
        except RuntimeError:
            pass  # its loop is closed

    def _release(self) -> None:
        """For a forked process. The parent's loop and the child's copy of it share one epoll descriptor: closing the transport
        here would remove the connection from the parent's epoll set. So only the descriptor is closed."""
        peer = self._writer.get_extra_info("socket")
        if peer is not None and peer.fileno() >= 0:
            null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            os.dup2(null, peer.fileno(), inheritable=False)
            os.close(null)

"""A connection to the server, for programs without asyncio."""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from typing import Any, Callable, Iterable, List, Optional, Set, TypeVar

from ._endpoint import Endpoint
from .errors import FORKED, ConnectionLost, TimeoutException

CONNECT_SECONDS = 10.0
RECEIVE_BYTES = 256 * 1024  # bytes of one read of long data
RECEIVE_FIRST = 16 * 1024  # for more, malloc(3) gets pages from the kernel and returns them, in each call

T = TypeVar("T")
sleep = time.sleep


def in_thread(function: Callable[[], T]) -> T:
    return function()


class Scope:
    """The connections of calls in several threads, which end together."""

    def __init__(self) -> None:
        self.streams: Set[Stream] = set()
        self.is_over = False

    def end(self) -> None:
        self.is_over = True
        for stream in list(self.streams):
            stream.abort()


_here = threading.local()


def in_order(function: Callable[[Any], T], items: Iterable[Any], at_once: int) -> List[T]:
    """The function's results for all items. After an exception, or Ctrl-C, no further call begins, and running ones end."""
    from concurrent.futures import ThreadPoolExecutor
    scope = Scope()

    def one(item: Any) -> T:
        _here.scope = scope
        return function(item)
    with ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(one, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            scope.end()
            raise


def owner() -> object:
    """A kept connection may be used only by the process that made it, not by one that was forked from it."""
    return os.getpid()

CONNECT_TIME = struct.pack("@ll", int(CONNECT_SECONDS), 0)  # struct timeval
NO_TIME = struct.pack("@ll", 0, 0)


class Stream:
    def __init__(self, peer: socket.socket) -> None:
        self._socket = peer
        self.owner = owner()
        self.idle_since = 0.0
        self._size = RECEIVE_FIRST
        self._poll = select.poll()
        self._poll.register(peer, select.POLLIN | select.POLLHUP | select.POLLERR)

    @classmethod
    def connect(cls, endpoint: Endpoint) -> Stream:
        peer: Optional[socket.socket] = None
        try:
            if endpoint.socket is not None:
                peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                # Not settimeout(): a socket that does not block gets EAGAIN from a full backlog, and does not wait: unix(7).
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, CONNECT_TIME)
                peer.connect(endpoint.socket)
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, NO_TIME)
            else:
                peer = socket.create_connection((endpoint.host, endpoint.port), CONNECT_SECONDS)
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                context = endpoint.context()
                if context is not None:
                    peer = context.wrap_socket(peer, server_hostname=endpoint.host)
            peer.settimeout(None)
        except BaseException as error:
            if peer is not None:
                peer.close()
            if isinstance(error, (OSError, UnicodeError)):  # UnicodeError: the host is not a valid name
                raise endpoint.unreached(error) from error
            raise
        return cls(peer)

    def send(self, data: bytes) -> None:
        if self.owner != owner():
            raise ConnectionLost(FORKED)
        scope: Optional[Scope] = getattr(_here, "scope", None)
        if scope is not None:
            scope.streams.add(self)
            if scope.is_over:
                raise ConnectionLost("another of the calls that belong together has failed")
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise ConnectionLost(f"the server took no more: {error}") from error

    def receive(self, timeout: Optional[float] = None) -> bytes:
        """The next bytes, b"" at the end."""
        if self.owner != owner():  # bytes that a forked child reads would be missing in the parent
            raise ConnectionLost(FORKED)
        try:
            if timeout is not None:
                self._socket.settimeout(max(timeout, 0.000001))
            data = self._socket.recv(self._size)
            self._size = RECEIVE_BYTES if len(data) == self._size else RECEIVE_FIRST
            return data
        except socket.timeout:
            raise TimeoutException("no answer came in time") from None
        except OSError as error:
            raise ConnectionLost(f"the connection ended: {error}") from error
        finally:
            if timeout is not None and self._socket.fileno() >= 0:
                self._socket.settimeout(None)

    def is_stale(self) -> bool:
        """Whether the server has closed the connection, or has sent unexpected bytes."""
        if self.owner != owner():
            return True
        return bool(self._poll.poll(0))

    def abort(self) -> None:
        """Ends a call of another thread that waits for this connection."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended

    def close(self) -> None:
        self._socket.close()

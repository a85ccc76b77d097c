"""Files of a sandbox. A path is absolute inside, or lies below /workspace."""

from __future__ import annotations

import os
import stat
from typing import Any, AsyncIterator, Iterable, List, Mapping, Optional, Union

from .._http import path_of
from ..errors import InvalidArgumentException, NotFoundException, error_of
from ..models import EntryInfo, FilesystemEvent, given, path_fields
from ..progress import Wish
from .client import AsyncClient, AsyncResponse, Body, meter_of

Content = Union[str, bytes, Any]  # text, bytes, or a file that is open for reading in binary mode


class AsyncFiles:
    def __init__(self, client: AsyncClient, session: str) -> None:
        self._client = client
        self._place = path_of("v1", "sessions", session)

    def _file(self, path: str) -> str:
        return self._place + "/files" + path_of(path)

    async def _call(self, what: str, request: Mapping[str, Any]) -> Any:
        return await self._client.call("POST", f"{self._place}/files:{what}", dict(request))

    async def read(self, path: str, format: Optional[str] = None, *, on_progress: Wish = None) -> Any:
        """Text, or bytes if the file is not UTF-8. `format`: "text" (bytes that are not UTF-8 are replaced), "bytes", or "stream"
        (an iterator of pieces). on_progress: True for a line on stderr, or a callback that gets each Progress."""
        meter = meter_of(on_progress, path)
        if format == "stream":
            return (await self._client.open("GET", self._file(path))).metered(meter)
        if format not in (None, "text", "bytes"):
            raise ValueError(f"format is text, bytes or stream, not {format!r}")
        data = (await self._client.request("GET", self._file(path), meter=meter)).body
        if format == "bytes":
            return data
        if format == "text":
            return data.decode("utf-8", "replace")
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data

    async def read_bytes(self, path: str, start: int = 0, size: Optional[int] = None, *, on_progress: Wish = None) -> bytes:
        """Up to `size` bytes from `start` on; a negative `start` counts from the end."""
        if size == 0:
            return b""
        last = "" if size is None or start < 0 else str(start + size - 1)
        headers = {"Range": f"bytes={start}" if start < 0 else f"bytes={start}-{last}"} if start or last else None
        data = (await self._client.request("GET", self._file(path), headers=headers, meter=meter_of(on_progress, path))).body
        return data[:size]

    async def write(self, path: str, data: Content, mode: Optional[int] = None, overwrite: bool = True, *,
                    on_progress: Wish = None) -> EntryInfo:
        """Writes a whole file: it replaces an old one when the last byte has arrived, or not at all. Without `overwrite`, a
        ConflictException is raised if the name exists."""
        body = _body_of(data)
        query = {} if mode is None else {"mode": f"{mode:o}"}
        headers = None if overwrite else {"If-None-Match": "*"}
        answer = await self._client.request("PUT", self._file(path), query=query, body=body, headers=headers,
                                            meter=meter_of(on_progress, path, _size_of(data, body)))
        row = answer.json()
        row["type"] = "file"
        return EntryInfo.of(row)

    async def write_files(self, files: Iterable[Mapping[str, Any]]) -> List[EntryInfo]:
        """[{"path": …, "data": …}, …]"""
        return [await self.write(each["path"], each["data"]) for each in files]

    async def list(self, path: str = "/workspace", depth: int = 1, limit: Optional[int] = None) -> List[EntryInfo]:
        """Lists a folder, sorted by path. Without `limit`, more than 10,000 entries are an error."""
        answer = await self._call("list", {**path_fields(path), "depth": depth, **given(limit=limit)})
        if answer["truncated"] and limit is None:
            raise InvalidArgumentException(f"{path} has more than {len(answer['entries'])} entries; list less, or give limit=")
        return [EntryInfo.of(row, path) for row in answer["entries"]]

    async def get_info(self, path: str) -> EntryInfo:
        return EntryInfo.of(await self._call("stat", path_fields(path)))

    async def exists(self, path: str) -> bool:
        try:
            await self._call("stat", path_fields(path))
            return True
        except NotFoundException:
            return False

    async def remove(self, path: str) -> None:
        """Removes a file, or a folder with its contents."""
        await self._client.request("DELETE", self._file(path))

    async def rename(self, old_path: str, new_path: str) -> EntryInfo:
        await self._call("move", {**path_fields(old_path, "from"), **path_fields(new_path, "to")})
        return await self.get_info(new_path)

    async def make_dir(self, path: str) -> bool:
        """False if it existed already."""
        if await self.exists(path):
            return False
        await self._call("mkdir", path_fields(path))
        return True

    async def download_dir(self, path: str = "/workspace", *, on_progress: Wish = None) -> AsyncIterator[bytes]:
        """A folder as a tar, in pieces."""
        response = await self._client.open("GET", f"{self._place}/files:tar", query={"path": path})
        return response.metered(meter_of(on_progress, path))

    async def upload_dir(self, data: Content, path: str = "/workspace", *, on_progress: Wish = None) -> List[str]:
        """Unpacks a tar (bytes, or a file open for reading) into a folder. Returns the members that were skipped: other kinds
        than files, folders and links, and those that would be outside."""
        body = _body_of(data)
        answer = await self._client.request("PUT", f"{self._place}/files:tar", query={"path": path}, body=body,
                                            meter=meter_of(on_progress, path, _size_of(data, body)))
        return [str(each) for each in answer.json()["skipped"]]

    async def watch_dir(self, path: str, recursive: bool = False) -> AsyncWatch:
        """An iterator of changes below a folder; close it when it is no longer needed."""
        query = {"path": path, **({"recursive": "1"} if recursive else {})}
        response = await self._client.open("GET", f"{self._place}/files:watch", query=query)
        return AsyncWatch(response)

    async def sign(self, path: str, method: str = "GET", expires: int = 3600, mode: Optional[int] = None) -> str:
        """A URL (a path, if the server listens on a Unix socket) that needs no key, for this one file and method, valid
        for this many seconds; `mode` is the mode of a file that is written."""
        answer = await self._call("sign", {**path_fields(path), "method": method, "expires_seconds": expires,
                                           **given(mode=None if mode is None else f"{mode:o}")})
        place = str(answer["url"])
        return place if self._client.endpoint.socket is not None or "://" in place else self._client.endpoint.url(place)


class AsyncWatch:
    def __init__(self, response: AsyncResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[FilesystemEvent]:
        async for event in self._response.events():
            if event.kind == "error":  # the folder is gone, or the sandbox has ended
                raise error_of(200, event.data)
            if isinstance(event.data, dict):
                yield FilesystemEvent(str(event.data.get("path", "")), event.kind)

    async def stop(self) -> None:
        await self._response.aclose()


def _body_of(data: Content) -> Body:
    if isinstance(data, str):
        return data.encode()
    return bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else _pieces_of(data)


def _size_of(data: Any, body: Body) -> Optional[int]:
    """The size of what is sent; None if it is not known, for example for a pipe."""
    if isinstance(body, bytes):
        return len(body)
    try:
        status = os.fstat(data.fileno())
        return status.st_size - int(data.tell()) if stat.S_ISREG(status.st_mode) else None
    except (AttributeError, OSError, ValueError):
        return None


async def _pieces_of(file: Any) -> AsyncIterator[bytes]:
    while True:
        piece = file.read(256 * 1024)
        if not piece:
            return
        yield piece.encode() if isinstance(piece, str) else piece

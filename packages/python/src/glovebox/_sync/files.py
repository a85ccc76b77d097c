"""Files of a sandbox. A path is absolute inside, or lies below /workspace."""
# Written by generate_sync.py from ../_async; change that, not this.

from __future__ import annotations

from typing import Any, Iterator, Iterable, List, Mapping, Optional, Union

from .._http import path_of
from ..errors import NotFoundException
from ..models import EntryInfo, FilesystemEvent
from .client import Client, Response, Body

Content = Union[str, bytes, Any]  # text, bytes, or a file that is open for reading in binary mode


class Files:
    def __init__(self, client: Client, session: str) -> None:
        self._client = client
        self._place = path_of("v1", "sessions", session)

    def _file(self, path: str) -> str:
        return self._place + "/files" + path_of(path)

    def _call(self, what: str, request: Mapping[str, Any]) -> Any:
        return self._client.call("POST", f"{self._place}/files:{what}", dict(request))

    def read(self, path: str, format: Optional[str] = None) -> Any:
        """Text, or bytes if it is no UTF-8. `format`: "text" (what is no UTF-8 is replaced), "bytes", or "stream"
        (an iterator of pieces)."""
        if format == "stream":
            return (self._client.open("GET", self._file(path))).pieces()
        if format not in (None, "text", "bytes"):
            raise ValueError(f"format is text, bytes or stream, not {format!r}")
        data = (self._client.request("GET", self._file(path))).body
        if format == "bytes":
            return data
        if format == "text":
            return data.decode("utf-8", "replace")
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data

    def read_bytes(self, path: str) -> bytes:
        return (self._client.request("GET", self._file(path))).body

    def write(self, path: str, data: Content, mode: Optional[int] = None) -> EntryInfo:
        """Writes a file whole: it takes the place of what had its name when the last byte is there, or not at all."""
        body: Body
        if isinstance(data, str):
            body = data.encode()
        elif isinstance(data, (bytes, bytearray, memoryview)):
            body = bytes(data)
        else:
            body = _pieces_of(data)
        query = {} if mode is None else {"mode": f"{mode:o}"}
        answer = self._client.request("PUT", self._file(path), query=query, body=body)
        return EntryInfo.of({"type": "file", **answer.json()})

    def write_files(self, files: Iterable[Mapping[str, Any]]) -> List[EntryInfo]:
        """[{"path": …, "data": …}, …]"""
        return [self.write(each["path"], each["data"]) for each in files]

    def list(self, path: str = "/workspace", depth: int = 1) -> List[EntryInfo]:
        """What is in a folder, sorted by path."""
        answer = self._call("list", {"path": path, "depth": depth})
        return [EntryInfo.of(row, path) for row in answer["entries"]]

    def get_info(self, path: str) -> EntryInfo:
        return EntryInfo.of(self._call("stat", {"path": path}))

    def exists(self, path: str) -> bool:
        try:
            self._call("stat", {"path": path})
            return True
        except NotFoundException:
            return False

    def remove(self, path: str) -> None:
        """Removes a file, or a folder with what is in it."""
        self._client.request("DELETE", self._file(path))

    def rename(self, old_path: str, new_path: str) -> EntryInfo:
        self._call("move", {"from": old_path, "to": new_path})
        return self.get_info(new_path)

    def make_dir(self, path: str) -> bool:
        """False if it was there."""
        if self.exists(path):
            return False
        self._call("mkdir", {"path": path})
        return True

    def download_dir(self, path: str = "/workspace") -> Iterator[bytes]:
        """A folder as the pieces of a tar."""
        return (self._client.open("GET", f"{self._place}/files:tar", query={"path": path})).pieces()

    def upload_dir(self, data: Content, path: str = "/workspace") -> None:
        """A tar (bytes, or a file open for reading) into a folder."""
        body: Body = bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else _pieces_of(data)
        self._client.request("PUT", f"{self._place}/files:tar", query={"path": path}, body=body)

    def watch_dir(self, path: str, recursive: bool = False) -> Watch:
        """Changes below a folder, to be iterated over; close it when it is not needed any more."""
        query = {"path": path, **({"recursive": "1"} if recursive else {})}
        response = self._client.open("GET", f"{self._place}/files:watch", query=query)
        return Watch(response)

    def sign(self, path: str, method: str = "GET", expires: int = 3600) -> str:
        """A URL (a path, if the server listens on a Unix socket) that needs no key, for this one file and method."""
        answer = self._call("sign", {"path": path, "method": method, "expires_s": expires})
        place = str(answer["url"])
        return place if self._client.endpoint.socket is not None or "://" in place else self._client.endpoint.url(place)


class Watch:
    def __init__(self, response: Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[FilesystemEvent]:
        for event in self._response.events():
            if isinstance(event.data, dict):
                yield FilesystemEvent(str(event.data.get("path", "")), event.kind)

    def stop(self) -> None:
        self._response.close()


def _pieces_of(file: Any) -> Iterator[bytes]:
    while True:
        piece = file.read(256 * 1024)
        if not piece:
            return
        yield piece.encode() if isinstance(piece, str) else piece

"""Deep Agents (deepagents): a back end, so that its file tools and `execute` work in a sandbox."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

from ..errors import GloveboxError, NotFoundException
from ..models import absolute
from ..modeltools import clipped
from ._common import Workspace

OUTPUT_MAX = 100_000  # characters of one command


class Backend(Workspace, BaseSandbox):
    """create_deep_agent(backend=Backend()). timeout: seconds of one command, if the model does not say."""

    def __init__(self, timeout: float = 120, **options: Any) -> None:
        super().__init__(**options)
        self.timeout = timeout

    @property
    def id(self) -> str:
        return self.sandbox.sandbox_id

    def execute(self, command: str, *, timeout: Optional[int] = None) -> ExecuteResponse:
        done = self.shell(["/bin/sh", "-c", command], timeout or self.timeout)
        output = done.stdout + done.stderr
        return ExecuteResponse(output=clipped(output, OUTPUT_MAX), exit_code=124 if done.exit_code is None else done.exit_code,
                               truncated=len(output) > OUTPUT_MAX)

    def upload_files(self, files: List[Tuple[str, bytes]]) -> List[FileUploadResponse]:
        return [FileUploadResponse(path=path, error=self._write(path, data)) for path, data in files]

    def _write(self, path: str, data: bytes) -> Optional[str]:
        try:
            self.sandbox.files.write(absolute(path), data)
            return None
        except GloveboxError as error:
            return _reason(error)

    def download_files(self, paths: List[str]) -> List[FileDownloadResponse]:
        return [self._read(path) for path in paths]

    def _read(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path=path, content=self.sandbox.files.read_bytes(absolute(path)))
        except GloveboxError as error:
            return FileDownloadResponse(path=path, error=_reason(error))


def _reason(error: GloveboxError) -> str:
    """The framework has a constant for a missing file; other errors are passed as text."""
    return "file_not_found" if isinstance(error, NotFoundException) else error.message

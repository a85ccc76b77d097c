"""The two classes that programs use."""

from __future__ import annotations

from typing import Any

from ._async.sandbox import AsyncSandboxBase
from ._sync.sandbox import SandboxBase


class Sandbox(SandboxBase):
    __doc__ = SandboxBase.__doc__

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._start()


class AsyncSandbox(AsyncSandboxBase):
    __doc__ = AsyncSandboxBase.__doc__

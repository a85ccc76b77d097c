"""The class for programs without asyncio."""

from __future__ import annotations

from typing import Any

from ._http import hide
from ._sync.sandbox import SandboxBase


class Sandbox(SandboxBase):
    __doc__ = SandboxBase.__doc__

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **hide(options))
        self._start()

"""The class that programs with asyncio use; a module of its own, since asyncio takes long to import."""

from __future__ import annotations

from ._async.sandbox import AsyncSandboxBase


class AsyncSandbox(AsyncSandboxBase):
    __doc__ = AsyncSandboxBase.__doc__

"""The class for programs with asyncio; in a module of its own, since importing asyncio takes long."""

from __future__ import annotations

from ._async.sandbox import AsyncSandboxBase


class AsyncSandbox(AsyncSandboxBase):
    __doc__ = AsyncSandboxBase.__doc__

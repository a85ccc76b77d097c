"""AG2 (ag2): an environment for its code tool."""

from __future__ import annotations

import asyncio
from typing import Any, Tuple

from ag2.tools.code import CodeRunResult

from ._common import Workspace


class Environment(Workspace):
    """SandboxCodeTool(Environment()). Variables stay between calls. timeout: seconds of a call."""

    def __init__(self, timeout: float = 60, **options: Any) -> None:
        super().__init__(**options)
        self.timeout = timeout

    @property
    def supported_languages(self) -> Tuple[str, ...]:
        return ("python", "bash")

    async def run(self, code: str, language: str, *, context: Any = None) -> CodeRunResult:
        exit_code, output = await asyncio.to_thread(self.run_blocks, [(language, code)], self.timeout)
        return CodeRunResult(output=output, exit_code=exit_code)

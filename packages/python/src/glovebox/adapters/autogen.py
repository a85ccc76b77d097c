"""AutoGen (autogen-core, autogen-agentchat, autogen-ext): a code executor."""

from __future__ import annotations

import asyncio
from typing import Any, List

from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult

from ._common import Workspace


class Executor(Workspace, CodeExecutor):
    """For CodeExecutorAgent and PythonCodeExecutionTool. Variables stay between blocks and steps. timeout: seconds of a block."""

    def __init__(self, timeout: float = 60, **options: Any) -> None:
        super().__init__(**options)
        self.timeout = timeout

    async def execute_code_blocks(self, code_blocks: List[CodeBlock], cancellation_token: CancellationToken) -> CodeResult:
        blocks = [(block.language, block.code) for block in code_blocks]
        running = asyncio.ensure_future(asyncio.to_thread(self.run_blocks, blocks, self.timeout))
        cancellation_token.link_future(running)
        exit_code, output = await running
        return CodeResult(exit_code=exit_code, output=output)

    async def start(self) -> None:
        """Does nothing: the sandbox is made when the first block runs."""

    async def stop(self) -> None:
        await asyncio.to_thread(self.close)

    async def restart(self) -> None:
        """Deletes the variables and keeps the files."""
        await asyncio.to_thread(self.sandbox.restart_code_context)

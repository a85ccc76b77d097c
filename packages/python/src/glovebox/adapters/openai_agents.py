"""OpenAI Agents SDK (openai-agents): function tools, and an executor for its shell tool."""

from __future__ import annotations

import asyncio
from typing import Any, Optional

from agents import FunctionTool, ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult

from ._common import Definition, Shell, ToolSet, Workspace


def tools(policy: Optional[str] = None, **options: Any) -> ToolSet:
    """Tools for Agent(tools=…), in a ToolSet."""
    return ToolSet(_tool, policy, options)


def _tool(definition: Definition) -> FunctionTool:
    async def invoke(_context: Any, arguments: str) -> str:
        return await definition.acall(arguments)
    return FunctionTool(name=definition.name, description=definition.description,
                        params_json_schema=definition.schema, on_invoke_tool=invoke)


class ShellExecutor(Workspace):
    """ShellTool(executor=ShellExecutor()): the model's shell commands run in one sandbox."""

    async def __call__(self, request: ShellCommandRequest) -> ShellResult:
        action = request.data.action
        timeout = action.timeout_ms / 1000 if action.timeout_ms else None
        output = []
        for command in action.commands:
            done = await asyncio.to_thread(self.shell, command, timeout)
            output.append(_output(command, done))
            if done.exit_code is None:
                break
        return ShellResult(output=output, max_output_length=action.max_output_length)


def _output(command: str, done: Shell) -> ShellCommandOutput:
    how = "timeout" if done.exit_code is None else "exit"
    return ShellCommandOutput(command=command, stdout=done.stdout, stderr=done.stderr,
                              outcome=ShellCallOutcome(type=how, exit_code=done.exit_code))

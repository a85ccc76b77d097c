"""Google ADK (google-adk): tools, and a code executor."""

from __future__ import annotations

from typing import Any, List, Optional

from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult, File
from google.adk.tools.function_tool import FunctionTool
from pydantic import PrivateAttr

from .._sandboxes import Sandbox
from ..modeltools import clipped
from ._common import Definition, ToolSet, Workspace


def tools(policy: Optional[str] = None, **options: Any) -> ToolSet:
    """Tools for LlmAgent(tools=…), in a ToolSet."""
    return ToolSet(_tool, policy, options)


def _tool(definition: Definition) -> FunctionTool:
    return FunctionTool(definition.async_function())


class CodeExecutor(BaseCodeExecutor):
    """LlmAgent(code_executor=CodeExecutor()): runs the code blocks of the model's answers. Variables stay. timeout_seconds
    is that of one block; input files lie below /workspace, and figures are output files."""

    _workspace: Workspace = PrivateAttr()

    def __init__(self, *, sandbox: Optional[Sandbox] = None, timeout_seconds: Optional[int] = 60, **options: Any) -> None:
        super().__init__(timeout_seconds=timeout_seconds)
        self._workspace = Workspace(sandbox=sandbox, **options)

    @property
    def sandbox(self) -> Sandbox:
        return self._workspace.sandbox

    @property
    def charts(self) -> List[bytes]:
        return self._workspace.charts

    def close(self) -> None:
        self._workspace.close()

    def execute_code(self, invocation_context: Any, code_execution_input: CodeExecutionInput) -> CodeExecutionResult:
        for file in code_execution_input.input_files:
            self.sandbox.files.write(file.name, file.content)
        before = len(self.charts)
        execution = self._workspace.run_cell(code_execution_input.code, timeout=self.timeout_seconds)
        drawn = [File(name=f"figure-{number}.png", content=self.charts[number - 1], mime_type="image/png")
                 for number in range(before + 1, len(self.charts) + 1)]
        text = "" if execution.text is None else execution.text
        # The framework treats any stderr as a failure, so warnings of a successful program are left out.
        failure = "" if execution.error is None else "\n".join([execution.stderr, execution.error.traceback, execution.explain()])
        return CodeExecutionResult(stdout=clipped(execution.stdout + text), stderr=clipped(failure.strip("\n")),
                                   output_files=drawn, exit_code=execution.exit_code)

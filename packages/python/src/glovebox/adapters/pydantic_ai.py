"""PydanticAI (pydantic-ai): a toolset."""

from __future__ import annotations

from typing import Any, List, Optional

from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import FunctionToolset

from .._sandboxes import Sandbox
from ._common import Definition, ToolSet


class Toolset(FunctionToolset[Any]):
    """Agent(toolsets=[Toolset()]): the tools of ToolSet, and its sandbox, charts and close()."""

    def __init__(self, policy: Optional[str] = None, **options: Any) -> None:
        self._made = ToolSet(_tool, policy, options)
        super().__init__(list(self._made))

    @property
    def sandbox(self) -> Sandbox:
        return self._made.sandbox

    @property
    def charts(self) -> List[bytes]:
        return self._made.charts

    def close(self) -> None:
        self._made.close()


def _tool(definition: Definition) -> Any:
    async def run(**arguments: Any) -> str:
        return await definition.acall(arguments)
    return Tool.from_schema(run, name=definition.name, description=definition.description, json_schema=definition.schema)

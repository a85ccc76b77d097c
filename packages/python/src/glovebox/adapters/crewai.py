"""CrewAI (crewai): tools."""

from __future__ import annotations

from typing import Any, Optional

from crewai.tools import BaseTool
from pydantic import Field, PrivateAttr, create_model

from ._common import Definition, ToolSet


def tools(policy: Optional[str] = None, **options: Any) -> ToolSet:
    """Tools for Agent(tools=…), in a ToolSet."""
    return ToolSet(_tool, policy, options)


class SandboxTool(BaseTool):
    _definition: Definition = PrivateAttr()

    def _run(self, **arguments: Any) -> str:
        return self._definition.call(arguments)


def _never(*_: Any) -> bool:
    """The same call may have another answer later, so no result is taken from the framework's cache."""
    return False


def _tool(definition: Definition) -> SandboxTool:
    fields: Any = {name: (str, Field(description=row["description"])) for name, row in definition.schema["properties"].items()}
    tool = SandboxTool(name=definition.name, description=definition.description, cache_function=_never,
                       args_schema=create_model(definition.name, **fields))
    tool._definition = definition
    return tool

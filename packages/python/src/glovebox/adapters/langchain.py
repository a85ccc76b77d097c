"""LangChain (langchain-core): tools. The figures that code draws are the artifact of its ToolMessage, as PNG."""

from __future__ import annotations

import asyncio
from typing import Any, List, Optional, Tuple

from langchain_core.tools import StructuredTool

from ._common import Definition, ToolSet


def tools(policy: Optional[str] = None, **options: Any) -> ToolSet:
    """Tools for create_agent(tools=…) and bind_tools(…), in a ToolSet."""
    return ToolSet(_tool, policy, options)


def _tool(definition: Definition) -> StructuredTool:
    def run(**arguments: Any) -> Tuple[str, List[bytes]]:
        return definition.workspace.call_with_charts(definition.name, arguments)

    async def arun(**arguments: Any) -> Tuple[str, List[bytes]]:
        return await asyncio.to_thread(run, **arguments)
    return StructuredTool(name=definition.name, description=definition.description, args_schema=definition.schema,
                          func=run, coroutine=arun, response_format="content_and_artifact")

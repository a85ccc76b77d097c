"""LlamaIndex (llama-index-core): tools."""

from __future__ import annotations

from typing import Any, Optional

from llama_index.core.tools import FunctionTool

from ._common import Definition, ToolSet


def tools(policy: Optional[str] = None, **options: Any) -> ToolSet:
    """Tools for FunctionAgent(tools=…), in a ToolSet."""
    return ToolSet(_tool, policy, options)


def _tool(definition: Definition) -> FunctionTool:
    return FunctionTool.from_defaults(fn=definition.function(), async_fn=definition.async_function(), name=definition.name,
                                      description=definition.description)

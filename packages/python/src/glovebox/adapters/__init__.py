"""Adapters for agent frameworks (docs/adapters.md). Each module imports its framework, and is imported only when used."""

from __future__ import annotations

import importlib
from typing import Any

# What pip installs for the framework of each module.
_PACKAGES = {"ag2": "ag2", "autogen": "autogen-agentchat", "claude": "anthropic", "crewai": "crewai", "deepagents": "deepagents",
             "google_adk": "google-adk", "inspect_ai": "inspect-ai", "langchain": "langchain", "llama_index": "llama-index-core",
             "openai_agents": "openai-agents", "pydantic_ai": "pydantic-ai-slim", "smolagents": "smolagents"}


def __getattr__(name: str) -> Any:
    if name not in _PACKAGES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module(f".{name}", __name__)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error.name} is not installed; run: pip install {_PACKAGES[name]}", name=error.name) from error

"""Adapters for agent frameworks (docs/adapters.md). Each module imports its framework, and is imported only when used."""

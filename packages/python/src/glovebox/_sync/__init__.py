"""Written by packages/python/generate_sync.py from glovebox._async; change that, not this."""

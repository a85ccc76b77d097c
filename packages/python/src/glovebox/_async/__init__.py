"""The asyncio flavour. packages/python/generate_sync.py writes the other one, glovebox._sync, from these files."""

"""The asyncio version of the package. packages/python/generate_sync.py writes glovebox._sync from these files."""

"""Drives every tool with an official client in Python: drive.py URL | drive.py PROGRAM ARGUMENT…, as cases.json says.
Prints "N passed, N failed". Run by the interpreter of a virtual environment that has `mcp`, of either generation."""

import asyncio
import contextlib
import json
import os
import pathlib
import sys

import mcp
from mcp import types

CASES = json.loads((pathlib.Path(__file__).parent / "cases.json").read_text())
answer = {}


async def elicited(_context, _params):
    return types.ElicitResult(**answer["now"])


@contextlib.asynccontextmanager
async def connected(words):
    """An object with call_tool, list_tools, read_resource."""
    is_url = words[0].startswith("http")
    if hasattr(mcp, "Client"):
        from mcp.client.stdio import StdioServerParameters
        server = words[0] if is_url else StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))
        async with mcp.Client(server, elicitation_callback=elicited) as client:
            print("revision", client.protocol_version, file=sys.stderr)
            yield client
        return
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamablehttp_client
    transport = streamablehttp_client(words[0]) if is_url else \
        stdio_client(StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ)))
    async with transport as streams, mcp.ClientSession(streams[0], streams[1], elicitation_callback=elicited) as session:
        print("revision", (await session.initialize()).protocolVersion, file=sys.stderr)
        yield session


def filled(arguments, known):
    text = json.dumps(arguments)
    for name, value in known.items():
        text = text.replace("{" + name + "}", value)
    return json.loads(text)


async def check(client, case, known):
    answer["now"] = case.get("answer", {"action": "cancel"})
    result = (await client.call_tool(case["tool"], filled(case["arguments"], known))).model_dump(by_alias=True, mode="json")
    structured = result.get("structuredContent") or {}
    assert bool(result.get("isError")) == case.get("is_error", False), result
    assert case.get("text", "") in result["content"][0]["text"], result["content"][0]["text"]
    assert case.get("structured", {}).items() <= structured.items(), structured
    if "kinds" in case:
        assert [part["type"] for part in result["content"]] == case["kinds"]
    if "read" in case:
        read = (await client.read_resource(result["content"][-1]["uri"])).model_dump(by_alias=True, mode="json")
        assert read["contents"][0]["blob"] == case["read"], read
    if "keep" in case:
        known[case["keep"]] = structured["id"]
    if case["tool"] == "run_code" and structured.get("status") == "ok":
        known.setdefault("run", structured["id"])


async def main():
    passed = failed = 0
    known = {"nonce": os.urandom(4).hex()}
    async with connected(sys.argv[1:]) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {case["tool"] for case in CASES} == names, names
        for case in CASES:
            try:
                await check(client, case, known)
                passed += 1
            except Exception as failure:  # noqa: BLE001: of any kind, told with the case's name
                failed += 1
                print(f"{case['name']}: {failure!r}", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(asyncio.run(main()))

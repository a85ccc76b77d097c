"""The package itself: what it costs to import, that it hides keys, and that its routes and fields are those of the server."""

import json
import pathlib
import re
import subprocess
import sys

import glovebox
import glovebox._sync.client
import glovebox.server
import pytest
from glovebox.models import Execution

PACKAGE = pathlib.Path(glovebox.__file__).parent
KEY = "gb_secret_0123456789"


def test_both_flavours_are_one_source():
    subprocess.run([sys.executable, PACKAGE.parents[1] / "generate_sync.py", "--check"], check=True)


def test_every_name_of_the_package_is_there():
    for name in glovebox.__all__:
        assert getattr(glovebox, name) is not None
    with pytest.raises(AttributeError):
        getattr(glovebox, "no_such_name")


def test_import_loads_none_of_its_modules():
    code = "import sys; before = set(sys.modules); import glovebox; print(*(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                            env={"PYTHONPATH": str(PACKAGE.parent)}).stdout.split()
    assert [name for name in loaded if name.startswith("glovebox")] == ["glovebox"]
    assert not {"ssl", "asyncio", "http", "json", "socket"} & set(loaded), loaded


def test_a_program_without_asyncio_does_not_load_it():
    code = "import sys, glovebox; glovebox.Sandbox, glovebox.run, glovebox.App; sys.exit('asyncio' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(PACKAGE.parent)})


def document(server):
    return json.loads(glovebox._sync.client.Client(lambda: glovebox.server.find(socket=server.socket)).request(
        "GET", "/openapi.json").body)


def test_every_field_of_a_result_is_read_or_raw(server):
    schemas = document(server)["components"]["schemas"]
    result = {**schemas["RunResult"]["properties"], **schemas["CellResult"].get("properties", {})}
    raw = glovebox.run("1", policy="minimal", socket=server.socket).raw
    assert set(raw) <= set(result) and set(result) - set(raw) <= {"cell"}
    read = set(re.findall(r'raw(?:\.get\(|\[)"(\w+)"', (PACKAGE / "models.py").read_text()))
    assert read <= set(result), read - set(result)


def test_every_route_of_the_package_is_one_of_the_server(server):
    """Each literal part of a path stands in a path of the document."""
    paths = " ".join(document(server)["paths"])
    parts = set()
    for file in (PACKAGE / "_sync").glob("*.py"):
        text = file.read_text().replace("/workspace", "")  # a place inside
        parts |= set(re.findall(r'(?<=")/(?!/)[a-z0-9][a-z0-9/:]*(?=")', text))
        for inner in re.findall(r"path_of\(([^)\[]*)[)\[]", text):
            parts |= {"/" + name for name in re.findall(r'"(\w+)"', inner)}
    assert len(parts) > 15 and all(part in paths for part in parts), parts


def test_a_key_is_in_no_repr_message_or_url():
    client = glovebox._sync.client.Client(lambda: glovebox.server.find(url="http://127.0.0.1:9", api_key=KEY))
    with pytest.raises(glovebox.ConnectionLost) as caught:
        client.call("POST", "/v1/runs", {})
    said = [repr(client), repr(client.endpoint), client.endpoint.url("/x"), str(caught.value), repr(caught.value)]
    assert not any(KEY in each for each in said)
    with pytest.raises(glovebox.ProtocolError) as refused:
        glovebox.server.find(url=f"http://user:{KEY}@127.0.0.1:9")
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("row", [
    {"text/plain": "x" * 10_000}, {"text/html": "<script>alert(1)</script>"}, {"image/svg+xml": "<svg onload='x'>"}, {},
    {"application/json": {"a": [[[[]]]]}}, {"no/such": "x"}, {"text/plain": "\ud800"},
])
def test_a_hostile_result_is_shown_without_running(row):
    execution = Execution({"id": "run_0", "status": "ok", "results": [{"main": True, "data": row, "chart": None}]})
    shown = json.dumps(execution._repr_mimebundle_())
    assert "<script" not in shown and "<svg onload" not in shown and repr(execution)

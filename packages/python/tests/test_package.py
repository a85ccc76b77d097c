"""The package itself: what it costs to import, and that it hides keys."""

import asyncio
import http.server
import json
import pathlib
import re
import subprocess
import sys
import threading

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


def test_an_adapter_whose_framework_is_missing_says_what_to_install():
    page = (PACKAGE.parents[3] / "docs/adapters.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| `([^` \[]+)[^`]*` \| `(\w+)` \|", page, re.MULTILINE)
    assert {name for _, name in rows} == {path.stem for path in (PACKAGE / "adapters").glob("[a-z]*.py")}
    for package, name in rows:
        done = subprocess.run([sys.executable, "-S", "-c", f"from glovebox.adapters import {name}"], capture_output=True, text=True,
                              check=False, env={"PYTHONPATH": str(PACKAGE.parent)})
        assert re.search(rf"Error: \w+ is not installed; run: pip install {package}\n$", done.stderr), done.stderr
    done = subprocess.run([sys.executable, "-S", "-c", "from glovebox.adapters import nothing"], capture_output=True, text=True,
                          check=False, env={"PYTHONPATH": str(PACKAGE.parent)})
    assert "cannot import name 'nothing'" in done.stderr


def test_a_program_without_asyncio_does_not_load_it():
    code = "import sys, glovebox; glovebox.Sandbox, glovebox.run, glovebox.App; sys.exit('asyncio' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(PACKAGE.parent)})


def test_the_program_is_run_by_the_module(tmp_path):
    program = tmp_path / "glovebox"
    program.write_text("#!/bin/sh\necho $0 $*; exit 3\n")
    program.chmod(0o755)
    command = [sys.executable, "-m", "glovebox", "doctor", "--json"]
    for path, code, said in [(program, 3, "doctor --json"), ("", 1, "not installed here")]:
        done = subprocess.run(command, check=False, capture_output=True, text=True,
                              env={"PYTHONPATH": str(PACKAGE.parent), "GLOVEBOX_PROGRAM": str(path), "PATH": "/nowhere"})
        assert done.returncode == code and said in done.stdout + done.stderr


def test_a_result_is_saved_in_the_form_of_the_ending(tmp_path):
    result = Execution({"id": "run_0", "status": "ok", "results": [{"main": True, "chart": None, "data": {
        "text/plain": "x", "image/png": "iVBORw==", "application/json": {"a": 1}}}]}).results[0]
    for ending, content in [("png", b"\x89PNG"), ("txt", b"x"), ("json", b'{"a": 1}')]:
        result.save(str(tmp_path / f"a.{ending}"))
        assert (tmp_path / f"a.{ending}").read_bytes() == content
    for name in ("a.svg", "a.data", "a", "a.metadata"):
        with pytest.raises(ValueError, match="it has text, png, json"):
            result.save(str(tmp_path / name))
        assert not (tmp_path / name).exists()


def test_a_key_is_in_no_repr_message_or_url():
    client = glovebox._sync.client.Client(lambda: glovebox.server.find(url="http://127.0.0.1:9", api_key=KEY))
    with pytest.raises(glovebox.ConnectionLost) as caught:
        client.call("POST", "/v1/runs", {})
    said = [repr(client), repr(client.endpoint), client.endpoint.url("/x"), str(caught.value), repr(caught.value)]
    assert not any(KEY in each for each in said)
    with pytest.raises(glovebox.ProtocolError) as refused:
        glovebox.server.find(url=f"http://user:{KEY}@127.0.0.1:9")
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("named, place", [({"url": "http://127.0.0.1:9"}, "http://127.0.0.1:9 (Connection refused)"),
                                          ({"socket": "/no/such"}, "/no/such (No such file or directory)")])
def test_a_server_that_is_not_there_is_named_with_what_to_do(named, place):
    says = f"no server answers at {place}; start it there: glovebox serve, or name another"
    with pytest.raises(glovebox.ConnectionLost) as caught:
        glovebox.run("1", **named)
    assert str(caught.value) == says

    async def asynchronous():
        with pytest.raises(glovebox.ConnectionLost) as caught:
            await glovebox.arun("1", **named)
        assert str(caught.value) == says
    asyncio.run(asynchronous())


class Quiet(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_a_port_that_speaks_no_tls_is_named():
    with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"https://127.0.0.1:{server.server_port}"
        says = f"the server at {url} does not speak TLS: write http:// for glovebox serve's own address, or name the proxy's"
        with pytest.raises(glovebox.ConnectionLost) as caught:
            glovebox.run("1", url=url)
        assert str(caught.value) == says

        async def asynchronous():
            with pytest.raises(glovebox.ConnectionLost) as caught:
                await glovebox.arun("1", url=url)
            assert str(caught.value) == says
        asyncio.run(asynchronous())
        server.shutdown()


def test_one_server_is_named():
    with pytest.raises(glovebox.InvalidArgumentException, match="url= and socket= exclude each other"):
        glovebox.run("1", url="http://127.0.0.1:9", socket="/no/such")


@pytest.mark.parametrize("row", [
    {"text/plain": "x" * 10_000}, {"text/html": "<script>alert(1)</script>"}, {"image/svg+xml": "<svg onload='x'>"}, {},
    {"application/json": {"a": [[[[]]]]}}, {"no/such": "x"}, {"text/plain": "\ud800"},
])
def test_a_hostile_result_is_shown_without_running(row):
    execution = Execution({"id": "run_0", "status": "ok", "results": [{"main": True, "data": row, "chart": None}]})
    shown = json.dumps(execution._repr_mimebundle_())
    assert "<script" not in shown and "<svg onload" not in shown and repr(execution)

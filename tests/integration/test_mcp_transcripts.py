"""The transcripts of docs/mcp.md: each block is repeated here, and its results are compared."""

import json
import re

import pytest
from conftest import TOP, Glovebox
from mcp_client import Bridge
from serving import Serving, let_others_in, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")

PAGE = (TOP / "docs/mcp.md").read_text()
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "transcript", "version": "1"}}
TITLES = ("Analyse a spreadsheet and give the chart back", "Compute exactly", "Run the tests of a folder", "Run after a person's approval")
FILES = {
    "sales.csv": "month,amount\njan,30\nfeb,42\nmar,12\n",
    "shop.py": "def total(prices):\n    return sum(prices) + 1\n",
    "test_shop.py": "import unittest\nimport shop\n\nclass Total(unittest.TestCase):\n    def test_total(self):\n"
                    "        self.assertEqual(shop.total([1, 2]), 3)\n",
}


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("transcripts"))
    state_of_its_own(glovebox)
    policies = glovebox.folder / "policies"
    policies.mkdir()
    (policies / "asked.yaml").write_text("name: asked\nextends: minimal\napproval: {when: [always], by: out_of_band}\n")
    policies.chmod(0o755)
    with Serving(glovebox, env={"GLOVEBOX_POLICIES": f"{policies}:{TOP / 'policies'}"}) as serving:
        yield serving


def block_of(title):
    return re.search(rf"^### {re.escape(title)}\n.*?^```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL).group(1)


def shown(part):
    if part["type"] == "text":
        return part["text"].rstrip("\n")
    if part["type"] == "resource_link":
        return f"[link: {part['name']}, {part['size']} bytes]"
    return f"[{part['type']}: {part['mimeType']}]"


def made_again(script, bridge, service):
    """The same calls, with what comes back now; what differs each time is shortened to its kind."""
    lines, approval = [], None
    for number, line in enumerate(line for line in script.splitlines() if line.startswith(("> ", "$ "))):
        lines.append(line)
        if line.startswith("$ glovebox approve"):
            decider = service.key("--scope", "approve,admin")
            assert service.call("POST", f"/v1/approvals/{approval}:decide", {"decision": "approve"}, key=decider).status == 200
            continue
        tool, arguments = line[2:].split(" ", 1)
        result = bridge.ask(number + 1, "tools/call", {"name": tool, "arguments": json.loads(arguments)})["result"]
        approval = (result.get("structuredContent") or {}).get("approval") or approval
        lines += [shown(part) for part in result["content"]]
    told = re.sub(r"\b(ses|run|apr)_[0-9a-f]{8,}", r"\1_…", "\n".join(lines) + "\n")
    return re.sub(r"\d+ bytes(?= are in \S+\.png)", "… bytes", told)


@pytest.mark.parametrize("title", TITLES)
def test_transcript_is_what_a_host_gets(service, tmp_path, title):
    let_others_in(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    bridge = Bridge(service.glovebox, "--socket", service.socket, "--files", f"{tmp_path}:rw")
    bridge.ask(0, "initialize", HELLO)
    script = block_of(title)
    assert made_again(script, bridge, service) == script
    assert bridge.end() == 0


def test_every_transcript_of_the_page_is_made():
    part = PAGE.split("\n## Transcripts\n")[1].split("\n## ")[0]
    assert tuple(re.findall("^### (.*)$", part, re.MULTILINE)) == TITLES

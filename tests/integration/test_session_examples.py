"""Runs the examples of docs/session-examples.md, each block by itself."""

import os
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, TOP, Glovebox
from session_rig import Daemon

BLOCKS = re.findall(r"^## ([^\n]*)\n.*?^```sh\n(.*?)^```$", (TOP / "docs/session-examples.md").read_text(encoding="utf-8"),
                    re.MULTILINE | re.DOTALL)
SAYS = {
    "Analysing a spreadsheet": ["north    440", "south    235", '{"type":"line","title":"Sales","lines":["north","south"]}'],
    "Running and fixing": ["the suite failed with 1", "the suite passes", "    return a + b"],
    "Testing a web server": ["<h1>It serves</h1>", "python3 -m http.server 8000", "<h1>And again</h1>"],
    "Pausing a session": ["paused", "{'trained': True}"],
    "Branching": ["max(sales): 170", "len(sales): 112.5", "// 2]: 120", "\n[120, 80, 150, 95, 170, 60]\n"],
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    folder = tmp_path_factory.mktemp("x")
    daemon = Daemon(Glovebox(folder), folder)
    yield daemon
    daemon.stop()


@pytest.mark.parametrize("title, block", BLOCKS, ids=[title for title, _ in BLOCKS])
def test_an_example_does_what_it_says(daemon, tmp_path, title, block):
    assert shutil.which("curl") and shutil.which("jq"), "tools/setup test installs both"
    done = subprocess.run(["bash", "-c", f"set -euo pipefail\n{block}"], cwd=tmp_path, capture_output=True, timeout=120, check=False,
                          env=os.environ | {"PATH": f"{BUILD}:{os.environ['PATH']}", "GLOVEBOX_SOCKET": daemon.path})
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.decode()
    for wanted in next(words for begin, words in SAYS.items() if title.startswith(begin)):
        assert wanted in said, said
    if title.startswith("Analysing a spreadsheet"):
        assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / "sales.xlsx").read_bytes().startswith(b"PK")
    daemon.idle()


def test_the_nginx_example_reports_a_daemon_that_is_down(daemon, tmp_path):
    [block] = [block for title, block in BLOCKS if title.startswith("Testing a web server")]
    place = "${GLOVEBOX_SOCKET:-/run/glovebox/glovebox.sock}"
    assert place in block
    done = subprocess.run(["bash", "-c", block.replace(place, str(tmp_path / "nowhere"))], cwd=tmp_path, capture_output=True, timeout=60,
                          check=False, env=os.environ | {"PATH": f"{BUILD}:{os.environ['PATH']}", "GLOVEBOX_SOCKET": daemon.path})
    assert b"curl: (7)" in done.stderr and b"curl: (7)" in done.stdout, done  # at the first call, and after the last try
    daemon.idle()


def test_every_example_is_looked_at():
    assert len(BLOCKS) == len(SAYS)

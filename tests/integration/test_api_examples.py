"""Runs the examples of docs/api.md, each block by itself, in a shell with curl."""

import re
import shutil
import subprocess

import pytest
from conftest import TOP, Glovebox
from serving import Serving, state_of_its_own

BLOCKS = re.findall(r"^```sh\n(.*?)^```$", (TOP / "docs/api.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def serving(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("x"))
    state_of_its_own(glovebox)
    with Serving(glovebox, tcp=False) as started:
        for code in "123":
            assert started.run(code).json["status"] == "ok"  # there are pages to turn
        yield started


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_an_example_does_what_it_says(serving, tmp_path, block):
    assert shutil.which("curl") and shutil.which("jq"), "tools/setup test installs both"
    script = f"set -euo pipefail\napi='curl --silent --fail-with-body --unix-socket {serving.socket}'\n" \
             f"url=http://localhost\n{block}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.decode()
    if "order-1147" in block:
        first, second = said.split()
        assert first == second and first.startswith("run_")
    elif "respond-async" in block and "?wait=" in block:
        assert said.split() == ["42", "ok"]
    elif "Last-Event-ID" in block:
        assert said.count("event: end") == 2
    elif "artifacts.zip" in block:
        assert said.startswith("helloell") and (tmp_path / "artifacts.zip").stat().st_size > 100


def test_there_are_examples():
    assert len(BLOCKS) >= 6

"""Languages with a compile step: its result is reported, and its processes have ended before the program runs."""

import json
import shutil

import pytest
from conftest import STATE
from serving import Serving, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")

# A compiler of two lines, so that no large template is needed: it refuses what says "wrong", and warns.
COMPILER = """grep -q wrong "$0" && { echo "main.toy:1: wrong" >&2; exit 3; }
echo warning >&2; (sleep 60 &) ; cp "$0" /run/main; chmod +x /run/main"""
POLICY = """name: toy
description: A language with a compiler.
template: toy
languages: [toy]
limits: {wall: 20s, cpu: 20s, memory: 256MiB, processes: 64, disk: 64MiB, inodes: 4096, output: 1MiB, artifacts: 16MiB}
network: none
"""


@pytest.fixture
def run(glovebox):
    """The minimal template under another name, with a language of its own."""
    state = state_of_its_own(glovebox)
    (state / "templates").unlink()
    (state / "templates").mkdir()
    for name in ("minimal", "toy"):
        place = state / "templates" / name
        place.mkdir()
        (place / "root").symlink_to(STATE / "templates" / "minimal" / "root")
        shutil.copy(STATE / "templates" / "minimal" / "digest", place)
        manifest = json.loads((STATE / "templates" / "minimal" / "manifest.json").read_text())
        if name == "toy":
            manifest |= {"name": "toy", "languages": {"toy": {"compile": ["/bin/bash", "-c", COMPILER, "{file}"],
                                                              "command": ["/run/main"], "file": "main.toy"}}}
        (place / "manifest.json").write_text(json.dumps(manifest))
    folder = glovebox.folder / "policies"
    folder.mkdir()
    (folder / "toy.yaml").write_text(POLICY)
    with Serving(glovebox, env={"GLOVEBOX_POLICIES": str(folder)}) as service:
        yield lambda code, **request: service.run(code, language="toy", policy="toy", **request).json


def test_what_was_compiled_runs(run):
    result = run("#!/bin/bash\necho it runs, $1", args=["well"])
    assert (result["status"], result["exit_code"], result["stdout"]) == ("ok", 0, "it runs, well\n"), result
    assert result["stderr"] == "warning\n", "what the compiler says is kept"


def test_what_does_not_compile_does_not_run(run):
    result = run("#!/bin/bash\necho wrong")
    assert (result["status"], result["fault"], result["exit_code"]) == ("error", "code", 3), result
    assert (result["stdout"], result["stderr"]) == ("", "main.toy:1: wrong\n")

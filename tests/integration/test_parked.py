"""Parked sandboxes: other languages start from them too; prewarming leaves no trace; each is used once."""

import json
import pathlib
import sys
import threading
import time

import pytest
from serving import Serving, state_of_its_own

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "soak"))
from service import Caller  # noqa: E402

pytestmark = pytest.mark.usefixtures("python_template")

JS = """name: js
description: JavaScript.
template: node
languages: [node]
limits: {wall: 30s, cpu: 30s, memory: 512MiB, processes: 64, disk: 256MiB, inodes: 16384, output: 1MiB, artifacts: 64MiB}
network: none
"""

LOOK = """
import json, os, sys
print(json.dumps({"files": {place: os.listdir(place) for place in ("/tmp", "/workspace", "/dev/shm")},
                  "environment": sorted(os.environ), "folder": os.getcwd(),
                  "main": sorted(name for name in globals() if not name.startswith("__"))}))
"""


def until_parked(run, times=200):
    """The result of the first run that got a sandbox that had waited."""
    for _ in range(times):
        result = run()
        assert result["status"] == "ok", result
        if result["usage"]["start"] == "parked":
            return result
        time.sleep(0.05)
    raise AssertionError("no sandbox was ever parked")


# Of the shapes that are kept: minimal, and data with and without its libraries.
LEAST_OF_ALL = 2 * 3


def until_count(service, is_right):
    """How many sandboxes wait, as soon as that is right."""
    for _ in range(600):
        parked = service.call("GET", "/v1/status").json["parked"]
        if is_right(parked):
            return parked
        time.sleep(0.05)
    raise AssertionError(f"{parked} sandboxes wait")


AS_IT_STARTS = {"GLOVEBOX_POOL_MIN": None}  # what is common is parked before anybody asks (conftest.py)


@pytest.fixture
def service(glovebox):
    state_of_its_own(glovebox)
    with Serving(glovebox, slots=16, env=AS_IT_STARTS) as one:
        yield one
    said = one.log.read_text()
    # That one could not be parked in time is no fault where others take the processor.
    assert "pool.sandbox_failed" not in said and "pool.prewarm_failed" not in said, said


def test_bash_starts_in_a_parked_sandbox(service):
    result = until_parked(lambda: service.run("echo one; echo two >&2", language="bash").json)
    assert (result["stdout"], result["stderr"]) == ("one\n", "two\n")


@pytest.mark.parametrize("policy", ["minimal", "data"])
def test_prewarming_leaves_no_trace(service, policy):
    """Given time, the next sandbox is prewarmed; with pandas in the code the one with libraries is taken."""
    code = LOOK if policy == "minimal" else "import pandas\n" + LOOK.replace('"__")', '"__") and name != "pandas"')
    first = service.run(code, policy=policy, limits={"memory_bytes": 200 << 20}).json
    assert first["status"] == "ok", first
    built = json.loads(first["stdout"])
    for _ in range(4):
        time.sleep(0.3)
        result = until_parked(lambda: service.run(code, policy=policy).json)
        assert json.loads(result["stdout"]) == built
        assert result["stderr"] == "" and result["denials"] == [] and result["results"] == []
        assert result["usage"]["wall_ms"] < result["limits"]["wall_ms"]


def test_the_first_cell_is_the_first(service):
    time.sleep(0.5)
    for _ in range(3):
        answer = service.call("POST", "/v1/runs", {"code": "40 + 2", "mode": "cell", "policy": "minimal", "language": "python"})
        assert answer.json["results"][0]["data"]["text/plain"] == "42", answer.json
        time.sleep(0.2)


def test_node_starts_in_a_parked_sandbox(glovebox):
    if not (glovebox.state / "templates" / "node" / "manifest.json").exists():
        pytest.skip("no template node here: glovebox template build node")
    state_of_its_own(glovebox)
    folder = glovebox.folder / "policies"
    folder.mkdir()
    (folder / "js.yaml").write_text(JS)
    with Serving(glovebox, env=AS_IT_STARTS | {"GLOVEBOX_POLICIES": str(folder)}) as service:
        result = until_parked(lambda: service.run("console.log([1, 2, 3].map(x => x * 2).join())", language="node",
                                                  policy="js").json)
    assert result["stdout"] == "2,4,6\n"


def test_an_interpreter_that_has_been_forked_often_makes_room(glovebox):
    """All children of one have its hash seed; after some two thousand of them there is another, and nobody waits."""
    state_of_its_own(glovebox)
    seeds, wrong = set(), []
    with Serving(glovebox, slots=24, env=AS_IT_STARTS) as service:
        caller = [Caller(service.socket) for _ in range(4)]

        def ask(which):
            for _ in range(900):
                status, result = caller[which].run(code="print(hash('seed'))", policy="minimal")
                if status != 200 or result["status"] != "ok":
                    wrong.append((status, result))
                seeds.add(result["stdout"])
                if len(seeds) > 1:
                    return

        threads = [threading.Thread(target=ask, args=(which,)) for which in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # So many in a row are demand for more than the two that wait of each shape, and when it ends the pool shrinks.
        grown = until_count(service, lambda parked: parked > LEAST_OF_ALL)
        until_count(service, lambda parked: parked < grown)
    assert not wrong, wrong[0]
    assert len(seeds) == 2, "3,600 runs, and one interpreter"


def test_a_reload_lets_go_what_is_parked_beyond_it(glovebox):
    state_of_its_own(glovebox)
    file = glovebox.folder / "g.yaml"
    file.write_text("pool_min: 4\n")
    with Serving(glovebox, "--config", file, slots=32, env=AS_IT_STARTS) as service:
        until_count(service, lambda parked: parked >= 8)
        file.write_text("pool_min: 1\n")
        service.reload()
        until_count(service, lambda parked: parked <= LEAST_OF_ALL // 2)

"""Every cell of tests/conformance/cells.py gives here what it gave in a real ipykernel, or differs for a reason
that is written there. tests/conformance/record writes down what ipykernel answers."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

CONFORMANCE = pathlib.Path(__file__).resolve().parents[1] / "conformance"
sys.path.insert(0, str(CONFORMANCE))
import cells  # noqa: E402  pylint: disable=wrong-import-position

RECORDED = json.loads((CONFORMANCE / "ipykernel.json").read_text())
ROWS = list(cells.rows())

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="maps a block of ids, as root")


def answer_of(rig, codes, interrupt):
    one = rig.fork()
    assert one.os_error == 0, one.failure
    folders = ["/workspace"] + [""] * len(codes)  # a cell without one stays where the last one was
    for code, folder in zip(codes[:-1], folders):
        one.execute(code, mode="CELL", stdin=None, folder=folder)
    os.close(one.stdin)
    one.stdin = -1
    if interrupt:
        threading.Timer(0.3, os.kill, (one.host_pid(), 2)).start()
    outcome = one.execute(codes[-1], mode="CELL", stdin=None, folder=folders[len(codes) - 1])
    one.close()
    assert outcome["executed"] is not None, "the interpreter ended without a word"
    error = outcome["error"]
    results = []
    for result in outcome["results"]:
        known = {"main": result["main"], "data": cells.normal_data(result["data"])}
        known |= {name: result[name] for name in ("metadata", "id", "update") if name in result}
        results.append(known)
    return {"status": "error" if error or outcome["executed"]["code"] else "ok", "results": results,
            "stdout": cells.normal(outcome["stdout"].decode()), "stderr": cells.normal(outcome["stderr"].decode()),
            "error": error and {"name": error["name"], "value": cells.normal(error["value"])}}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_cell(row, request):
    name, codes, reason, *kind = row
    ours = answer_of(request.getfixturevalue("data" if kind == ["data"] else "light"), codes, kind == ["interrupt"])
    theirs = RECORDED[name]
    if reason is None:
        assert cells.told_plainly(ours, theirs) == theirs
    else:
        assert ours != theirs, f"this row needs no reason any more: {cells.REASONS[reason]}"
        cells.CHECKS.get(reason, lambda ours, theirs: None)(ours, theirs)


def test_the_table_is_large_and_its_reasons_are_used():
    assert len(ROWS) >= 80 and len({row[0] for row in ROWS}) == len(ROWS)
    assert {row[2] for row in ROWS} - {None} == set(cells.REASONS)
    assert set(RECORDED) == {row[0] for row in ROWS}
    assert sum(row[2] is None for row in ROWS) >= 80


def test_what_was_written_down_is_what_ipykernel_answers():
    if importlib.util.find_spec("ipykernel") is None or importlib.util.find_spec("jupyter_client") is None:
        pytest.skip("no ipykernel here (Debian: python3-ipykernel, python3-jupyter-client)")
    done = subprocess.run([sys.executable, "-B", str(CONFORMANCE / "record"), "--check"], capture_output=True,
                          text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

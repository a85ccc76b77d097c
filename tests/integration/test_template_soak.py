"""tests/soak/templates.py, which `make template-changes` runs for minutes: its first turns, and each way to damage a template."""

import random
import shutil
import sys

import pytest
from conftest import BUILD, STATE, TOP

sys.path.insert(0, str(TOP / "tests/soak"))
import templates  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("dpkg-query"), reason="this machine has no dpkg to copy packages of")


def test_runs_of_others_do_not_notice_that_a_template_changes(monkeypatch, capsys):
    """Every step once, and as many damages as there are."""
    steps = ["step_fail", "step_kill", "step_build", "step_roll_back", "step_remove", "step_build", *["step_damage"] * len(templates.DAMAGES)]
    ways = iter(templates.DAMAGES)
    monkeypatch.setattr(templates.Changes, "choose", lambda self: getattr(self, steps.pop(0)) if steps else None)
    monkeypatch.setattr(templates.Changes, "choose_damage", lambda _: next(ways))
    monkeypatch.setenv("GLOVEBOX_STATE", str(STATE))
    monkeypatch.setattr(sys, "argv", ["templates.py", str(BUILD), "600"])
    ended = templates.main()
    told = capsys.readouterr().out
    assert ended == 0, told
    assert "cells in python" in told and all(how in told for how in templates.DAMAGES), told
    random.seed()

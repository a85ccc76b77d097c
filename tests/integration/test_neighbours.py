"""tests/soak/neighbours.py, which `make neighbours` runs for all kinds of noise: what it calls wrong, and that a tenant is
answered and charged as if it were alone beside a few of them. How long that takes is judged there, not here."""

import sys

from conftest import BUILD, STATE, TOP

sys.path.insert(0, str(TOP / "tests/soak"))
import neighbours  # noqa: E402
import noise  # noqa: E402


def test_a_kind_may_not_worsen():
    assert neighbours.judge("forks", 9.9, 0) == []
    assert "p99 is 10.1 times quiet" in neighbours.judge("forks", 10.1, 0)[0]
    assert "2 turns of the loop took more than 50 ms" in neighbours.judge("forks", 1, 2)[0]
    assert len(neighbours.judge("forks", 11, 1)) == 2


def test_kinds_lie_between_quiet_windows():
    turns = list(neighbours.in_turns(list(noise.KINDS)[1:]))
    assert turns[0] == turns[-1] == "quiet" and turns.count("quiet") == 5 and set(turns) == set(noise.KINDS)


def test_a_client_that_gives_way_must_have_been_served_no_less():
    assert neighbours.done_for({"2xx": 3, "4xx": 1}) > neighbours.done_for({"2xx": 2, "4xx": 99})
    assert neighbours.done_for({"4xx": 2}) < neighbours.done_for({"4xx": 3})


def test_nothing_of_it_is_the_other_ones(monkeypatch, capsys):
    monkeypatch.setenv("GLOVEBOX_STATE", str(STATE))
    monkeypatch.setattr(neighbours, "judge", lambda *_: [])
    monkeypatch.setattr(neighbours, "QUIET_MS", float("inf"))
    monkeypatch.setattr(sys, "argv", ["neighbours.py", str(BUILD), "1", "spinners", "artifacts", "no routes"])
    ended = neighbours.main()
    told = capsys.readouterr().out
    assert ended == 0, told
    assert "the polite tenant was charged" in told and "its neighbour heard {'4xx':" in told

"""What `make bench` makes of its samples: intervals, misses of the pool, verdicts, and what got worse than in the page."""

import pathlib
import random
import shutil
import statistics
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "bench"))

import pairs  # noqa: E402
import report  # noqa: E402
import unseen  # noqa: E402

SLOW, QUICK = [float(n) for n in range(100, 160)], [float(n) / 10 for n in range(100, 160)]


def test_an_interval_holds_the_median_of_most_samples():
    drawn = random.Random(7)
    held = 0
    for _ in range(60):
        low, high = pairs.interval([drawn.gauss(10, 2) for _ in range(80)])
        held += low <= 10 <= high
    assert 50 <= held <= 60


def test_pairs_are_compared_one_by_one():
    """What moves both of a pair moves neither quotient nor difference."""
    busy = [random.Random(3).uniform(1, 50) for _ in range(50)]
    compared = pairs.compared([(2 * one, one) for one in busy])
    assert compared["share"] == 2 and compared["share_interval"] == (2, 2)
    assert compared["difference_ms"] == statistics.median(busy)


def rows():
    return report.rows_of({"hello bare": SLOW, "hello warm": QUICK}, {"hello warm": {"parked": 60, "built": 3}})


def test_a_row_has_its_ratio_its_interval_and_the_misses_of_the_pool():
    bare, warm = rows()
    assert bare["ratio_to_bare"] == 1 and abs(warm["ratio_to_bare"] - 0.1) < 1e-9 and warm["misses"] == 3
    low, high = warm["ratio_to_bare_interval"]
    assert 0.09 < low < 0.1 < high < 0.11
    assert warm["held"] is False and warm["held_each"] == {"p50_ms": False, "ratio": False}


def test_a_table_has_the_columns_that_its_rows_fill():
    heads = report.table(rows()).splitlines()[0]
    assert "to bare" in heads and "misses" in heads and "MiB" not in heads and "gloveboxd ms" not in heads


def test_a_row_is_worse_where_the_intervals_do_not_meet():
    now = report.table(rows())
    slower = report.table(report.rows_of({"hello bare": SLOW, "hello warm": [2 * one for one in QUICK]}))
    assert report.worse(now, now, {"hello warm"}) == []
    assert report.worse(now, slower, {"hello warm"}) == [], "it got better"
    assert [line.split(":")[:2] for line in report.worse(slower, now, {"hello warm"})] == [["worse", " hello warm, to bare"]]
    assert report.worse(slower, now, {"hello bare"}) == [], "another row was asked for"
    rate = report.table(report.rows_of_load({"flat out light, 8 clients": (200.0, QUICK, 0)}))
    less = report.table(report.rows_of_load({"flat out light, 8 clients": (100.0, QUICK, 0)}))
    assert report.worse(rate, less, {"flat out light, 8 clients"}) == []
    assert len(report.worse(less, rate, {"flat out light, 8 clients"})) == 1, "fewer runs a second are worse"


def test_a_line_of_an_unseen_program_elsewhere_is_found(tmp_path):
    """However it is quoted or indented."""
    (tmp_path / "tests/bench").mkdir(parents=True)
    shutil.copy(TOP / "tests/bench/unseen.py", tmp_path / "tests/bench/unseen.py")
    tool = [sys.executable, "-B", str(TOP / "tools/unseen_programs"), str(tmp_path)]
    assert subprocess.run(tool, check=False).returncode == 0
    line = unseen.PROGRAMS["bands"][0].splitlines()[2]
    (tmp_path / "rehearsal.py").write_text(f"WORK = b\"\"\"\n    {line}\\n\"\"\"\n", encoding="utf-8")
    done = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "rehearsal.py: holds a line of 'bands'" in done.stdout

"""gloveboxd over a simulated clock, disk, spawner and clients (tests/simulate): thousands of stories of kills, power cuts and
failing disks, each repeated by its seed. `make simulate SEEDS=10000` is the long form, `make simulate SEED=n` repeats one."""

import subprocess

import pytest
from conftest import BUILD, TOP

KEPT = TOP / "tests" / "simulate" / "kept-seeds"
PLANTED = {
    "no-intent": "has no receipt",
    "double-free": "is given back, which is not in use",
    "other-tenant": "which is of",
    "lost-slot": "does not come to rest",
    "no-key": "though it has a key",
}


def simulate(*arguments):
    done = subprocess.run([BUILD / "simulate", "--policies", TOP / "policies", *arguments], capture_output=True, text=True,
                          errors="replace", timeout=300, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done


def test_seeds_of_bugs_that_were_found_find_nothing():
    done = simulate("--kept", KEPT)
    assert done.returncode == 0, done.stdout


def test_the_first_seeds_find_nothing():
    """Any change of gloveboxd makes new stories of them."""
    done = simulate("--seeds", "2000", "--seconds", "15")
    assert done.returncode == 0, f"{done.stdout}\nmake simulate SEED=n repeats it"


def test_a_seed_is_the_same_story_each_time():
    def hashes(*arguments):
        return sorted(line for line in simulate("--from", "70000", "--seeds", "24", "--hashes", *arguments).stdout.splitlines()
                      if len(line.split()) == 2)
    one = hashes("--jobs", "1")
    assert len(one) == 24 and len({line.split()[1] for line in one}) == 24
    assert hashes("--jobs", "3") == one


def test_a_trace_is_printed_for_one_seed():
    done = simulate("--seed", "70000", "--verbose")
    assert done.returncode == 0 and "daemon 1, " in done.stdout and done.stdout.count("\n") > 100, done.stdout


@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_bug_is_found(plant):
    """Some stories end before the bug can be seen, so that it may take some of them."""
    done = simulate("--from", "1", "--seeds", "2000", "--plant", plant)
    assert done.returncode == 1 and PLANTED[plant] in done.stdout, done.stdout

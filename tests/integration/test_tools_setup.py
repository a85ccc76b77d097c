"""tools/setup installs what is missing and nothing else, with programs of the test's own in place of dpkg-query and apt-get."""

import os
import subprocess

import pytest
from conftest import TOP

LIST = [line.split()[:2] for line in (TOP / "tools/packages.txt").read_text().splitlines() if line[:1].isalpha()]
OF_TEST = {name for section, name in LIST if section == "test"}


@pytest.fixture
def setup(tmp_path):
    """Gives what is asked of apt-get, by what dpkg-query says is there."""
    def run(*lines):
        for name, text in (("dpkg-query", "cat \"$0.txt\""), ("apt-get", 'echo "$*" >>"$0.txt"'), ("sudo", 'exec "$@"')):
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)
        (tmp_path / "dpkg-query.txt").write_text("".join(f"{line}\n" for line in lines))
        done = subprocess.run([TOP / "tools/setup", "test"], env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=True)
        asked = tmp_path / "apt-get.txt"
        words = asked.read_text().splitlines()[-1].split() if asked.exists() else []
        return {word for word in words if not word.startswith("-")} - {"install", "DPkg::Lock::Timeout=300"}, done.stdout
    return run


def test_nothing_is_asked_where_all_is_there(setup):
    assert setup(*(f"installed {name} " for name in OF_TEST)) == (set(), "")


def test_what_another_package_brings_is_there(setup):
    there = [f"installed {name} " for name in OF_TEST - {"npm"}]
    assert setup(*there, "installed nodejs nodejs-dev, nodejs-doc (= 20), npm") == (set(), "")


def test_what_is_missing_is_named_with_its_reason(setup):
    there = [f"installed {name} " for name in OF_TEST - {"npm", "jq"}]
    asked, said = setup(*there, "deinstall npm ", "not-installed jq ", "installed libjq1 ", "installed npm-other not-npm (= 1), jq-doc")
    assert asked == {"npm", "jq"} and "  npm " in said and "list packages of npm" in said, said

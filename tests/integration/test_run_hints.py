"""Lines that `glovebox run` adds on stderr: a file that was not sent along, files that were made and not saved, a
signal."""

import re

import pytest

pytestmark = pytest.mark.usefixtures("python_template")

FILES = {"data.csv": "a,b\n1,2\n", "helper.py": "x = 1\n", "sub/deep.txt": "d"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sub").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def lines_of(done):
    return [line for line in done.stderr.decode().splitlines() if line.startswith("glovebox: ")]


@pytest.mark.parametrize("language, code, name", [
    ("python", "open('data.csv')", "data.csv"),
    ("python", "open('/workspace/sub/deep.txt')", "sub/deep.txt"),
    ("python", "import helper", "helper.py"),
    ("python", "from helper.part import x", "helper.py"),
    ("bash", "cat data.csv", "data.csv"),
])
def test_missing_file_of_the_callers_folder(glovebox, folder, language, code, name):
    done = glovebox.run("-l", language, "-c", code, cwd=folder)
    assert done.returncode == 1
    assert lines_of(done) == [f"glovebox: '{name}' lies in your folder and was not sent along; add --file {name}"]


def test_missing_file_by_its_path_on_the_host(glovebox, folder):
    def says(code, *options):
        return lines_of(glovebox.run(*options, "-c", code, cwd=folder))

    start = "glovebox: the sandbox does not have your"
    assert says(f"open('{folder}/data.csv')") == [f"{start} 'data.csv'; open it by that name, and add --file data.csv"]
    assert says(f"open('{folder}/sub/deep.txt')") == [
        f"{start} 'sub/deep.txt'; open it by that name, and add --file sub/deep.txt"]
    assert says(f"open('{folder}/data.csv')", "--file", "data.csv") == [f"{start} 'data.csv'; open it by that name"]
    for path in (f"{folder}/nowhere", f"{folder}2/data.csv", f"{folder}/../{folder.name}/data.csv", "/etc/passwd/x"):
        assert says(f"open({path!r})") == [], path


@pytest.mark.parametrize("code", [
    "open('nowhere.csv')", "open('../data.csv')", "open('/etc/nowhere')", "open('sub/../../data.csv')",
    "raise SystemExit(\"No such file or directory: '\")", "raise SystemExit(\"No such file or directory: ''\")",
])
def test_no_hint_for_files_that_are_elsewhere(glovebox, folder, code):
    (folder / "inner").mkdir()
    assert lines_of(glovebox.run("-c", code, cwd=folder / "inner")) == []


def test_missing_module(glovebox, tmp_path):
    done = glovebox.run("-c", "import no_such_module", cwd=tmp_path)
    assert lines_of(done) == ["glovebox: the template has no module no_such_module; its operator can add it: "
                              "glovebox libs request no_such_module"]


@pytest.mark.parametrize("code, words", [
    ("import os; os.kill(os.getpid(), 9)", "signal 9 (SIGKILL): a program in the sandbox sent it, no limit was reached"),
    ("import os; os.kill(os.getpid(), 11)", "signal 11 (SIGSEGV): Segmentation fault"),
    ("import os; os.kill(os.getpid(), 40)", "signal 40 (SIG?): a real-time signal"),
])
def test_death_by_signal(glovebox, code, words):
    assert lines_of(glovebox.run("-c", code)) == [f"glovebox: the program was ended by {words}"]


def test_death_by_memory_is_no_signal(glovebox):
    done = glovebox.run("--memory", "64MiB", "-c", "b = bytearray(10**9)")
    if done.returncode == 137:
        assert len(lines_of(done)) == 1 and "ran out of memory" in lines_of(done)[0]


def test_stdin_that_was_not_passed_on(glovebox):
    says = ["glovebox: the program reads stdin, and was given none; pass yours on with --stdin"]
    assert lines_of(glovebox.run("-c", "input('? ')")) == says
    assert lines_of(glovebox.run("--stdin", "-c", "input(); input()", stdin=b"one\n")) == []


def test_unexpected_output_files(glovebox, tmp_path):
    code = "for name in ('a.txt', 'b.txt'): open(name, 'w').write('hi')"
    done = glovebox.run("-c", code)
    assert done.returncode == 0
    assert re.fullmatch(r"glovebox: 2 files were made \([ab].txt, …\) and not saved here; add --out FOLDER",
                        *lines_of(done))
    assert lines_of(glovebox.run("--out", tmp_path / "out", "-c", code)) == []
    assert lines_of(glovebox.run("--json", "-c", code)) == []


def test_option_of_a_limit_of_two_words(glovebox, tmp_path):
    done = glovebox.run("--artifact-files", "1", "--out", tmp_path / "out", "-c", "open('a', 'w'); open('b', 'w')")
    assert lines_of(done)[0] == "glovebox: limit artifact_files was reached 1 time; raise it with --artifact-files, or in the policy"


def test_chart_that_is_shown_nowhere(glovebox):
    code = "import matplotlib.pyplot as plt; plt.plot([1]); "
    assert "plt.savefig" in lines_of(glovebox.run("-c", code + "plt.show()"))[0]
    done = glovebox.run("-c", code + "plt.savefig('c.png'); plt.show()")
    assert lines_of(done) == ["glovebox: 1 file was made (c.png) and not saved here; add --out FOLDER"]

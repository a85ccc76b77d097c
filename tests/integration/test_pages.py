"""Blocks of the README and of pages that no other test runs: programs as they stand, YAML as the command reads it; and what
`make run` does where the package index cannot be reached."""

import json
import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest
from conftest import BUILD, TOP
from serving import Serving, state_of_its_own

POLICIES = ("network", "output-validation", "policies", "precheck", "teams")


def blocks_of(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (TOP / page).read_text(), re.MULTILINE | re.DOTALL)


def one_with(page, language, word):
    [block] = [block for block in blocks_of(page, language) if word in block]
    return block


def named(text):
    return re.search(r"^name: (\S+)$", text, re.MULTILINE)[1]


def whole_policies():
    """What begins with another key than `network` is no policy: a set, a file of secrets, cases of `policy test`."""
    for page in POLICIES:
        for block in blocks_of(f"docs/{page}.md", "yaml"):
            if block.startswith("network:"):
                yield pytest.param(f"name: part\nextends: data\n{block}", id=page)
            elif "\nextends:" in block:
                yield pytest.param(block, id=f"{page}-{named(block)}")


WHOLE = list(whole_policies())


@pytest.mark.parametrize("text", WHOLE)
def test_a_policy_of_a_page_is_valid(glovebox, tmp_path, text):
    file = tmp_path / f"{named(text)}.yaml"
    file.write_text(text)
    done = glovebox("policy", "validate", file)
    assert done.returncode == 0 and b" is valid: " in done.stdout, done
    file.write_text(text + "no_such_key: 1\n")
    assert glovebox("policy", "validate", file).returncode == 125


def test_each_page_has_policies():
    assert {param.id.partition("-")[0] for param in WHOLE} == {page.partition("-")[0] for page in POLICIES}


def test_the_cases_of_the_page_hold_for_its_policy(glovebox, tmp_path):
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "careful.yaml").write_text(one_with("docs/policies.md", "yaml", "name: careful"))
    cases = one_with("docs/policies.md", "yaml", "cases:")
    (tmp_path / "cases.yaml").write_text(cases)
    (tmp_path / "chart.py").write_text("import matplotlib.pyplot as plt\nplt.plot([1, 2])\n")
    environment = {"GLOVEBOX_POLICIES": f"{folder}:{BUILD}/policies"}
    done = glovebox("policy", "test", tmp_path / "cases.yaml", env=environment)
    assert done.returncode == 0 and done.stdout.count(b"ok ") == cases.count("{name:"), done
    (tmp_path / "cases.yaml").write_text(cases.replace("expect: allow", "expect: deny"))
    assert glovebox("policy", "test", tmp_path / "cases.yaml", env=environment).returncode == 1


def test_the_set_of_the_page_is_found_by_its_name(glovebox, tmp_path):
    folder = tmp_path / "policies"
    (folder / "sets").mkdir(parents=True)
    (folder / "sets/mirror.yaml").write_text(one_with("docs/network.md", "yaml", "name: mirror"))
    (folder / "ours.yaml").write_text("name: ours\nextends: data\nnetwork: {sets: [mirror]}\n")
    shown = glovebox("policy", "show", "ours", env={"GLOVEBOX_POLICIES": f"{folder}:{BUILD}/policies"})
    assert shown.returncode == 0 and b"index.example.org" in shown.stdout, shown


def test_the_recipe_of_the_page_is_right(glovebox, tmp_path):
    """Room that no disk has: the recipe is read and checked, and nothing is built."""
    text = one_with("docs/templates.md", "yaml", "base: debian")
    (tmp_path / "geo.yaml").write_text(re.sub(r"disk: \S+", "disk: 8000GiB", text))
    done = glovebox("template", "build", tmp_path / "geo.yaml", "--state", tmp_path / "state")
    assert done.returncode != 0 and b"make room" in done.stderr, done


@pytest.fixture
def service(glovebox, python_template):
    state_of_its_own(glovebox)
    with Serving(glovebox) as started:
        yield started


def test_the_readme_over_http(service, tmp_path):
    code = one_with("README.md", "python", "urllib.request").replace("127.0.0.1:7070", f"127.0.0.1:{service.port}")
    (tmp_path / "examples").symlink_to(TOP / "examples")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
                          env=os.environ | {"KEY": service.key()["key"]})
    assert done.returncode == 0 and done.stdout.startswith("ok "), done
    assert (tmp_path / "wine.png").read_bytes().startswith(b"\x89PNG") and (tmp_path / "wine.csv").stat().st_size > 100


def test_the_readme_in_c(service, tmp_path):
    """By the command that stands below the program."""
    (tmp_path / "hello.c").write_text(one_with("README.md", "c", "int main"))
    [command] = re.findall(r"^\$ (cc .*hello\.c .*)$", (TOP / "README.md").read_text(), re.MULTILINE)
    for word, path in (("-Iinclude", f"-I{TOP}/include"), ("-Lbuild", f"-L{BUILD}"), ("$PWD/build", str(BUILD))):
        assert word in command
        command = command.replace(word, path)
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
                          env=service.glovebox.environment({"GLOVEBOX_SOCKET": service.socket}))
    assert done.returncode == 0 and json.loads(done.stdout)["stdout"] == "42\n", done


def test_three_ways_are_tried_and_one_is_kept(service):
    """docs/sessions.md; the daemon's address, the ways and what they are worth are the reader's."""
    import urllib.request
    key = service.key("--scope", "run,sessions")["key"]
    opener = urllib.request.build_opener()
    opener.addheaders = [("Authorization", f"Bearer {key}")]
    code = one_with("docs/sessions.md", "python", "/branch").replace(
        "run(base,", "run(base, \"open('sales.csv', 'w').write('a\\\\n3\\\\n4\\\\n')\")\nrun(base,")
    names = {"API": f"http://127.0.0.1:{service.port}", "WAYS": ["print(df.a.max())", "print(df.a.sum())", "print(df.a.min())"],
             "score": lambda result: float(result["stdout"])}
    previous = urllib.request._opener
    urllib.request.install_opener(opener)
    try:
        exec(compile(code, "sessions.md", "exec"), names)
    finally:
        urllib.request.install_opener(previous)
    assert names["best"] == "print(df.a.sum())" and len({names["base"], *names["tries"].values()}) == 4


def on_a_terminal(script, folder, env, typed):
    """Runs it there; each text is typed when what stands before it has come. Gives the exit status and what was shown."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe("bash", ["bash", "-c", script], env)
    shown, waits, end = b"", list(typed), time.monotonic() + 120
    seen = 0
    while time.monotonic() < end:
        if waits and waits[0][0].encode() in shown[seen:]:
            seen = len(shown)
            os.write(terminal, waits.pop(0)[1].encode())
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:
                break
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode().replace("\r\n", "\n")


def environment_of(service):
    return service.glovebox.environment({"GLOVEBOX_SOCKET": service.socket, "PATH": f"{BUILD}:{os.environ['PATH']}"})


def test_the_command_line_of_sessions(service, tmp_path):
    """docs/sessions.md, on a terminal: the shell is left as the page says, and left for good when it was attached again."""
    (tmp_path / "table.csv").write_text("a,b\n1,2\n3,4\n")
    status, shown = on_a_terminal(f"set -euo pipefail\n{one_with('docs/sessions.md', 'sh', 'session new')}", tmp_path,
                                  environment_of(service), [("$ ", "\r~."), ("bash", ""), ("$ ", "exit\r")])
    assert status == 0, shown
    for words in ("mean   2.000000  3.000000", "3 in/table.csv", "left; it runs on: glovebox session attach ses_", "  running   yes       bash", "ckp_",
                  '  ses_', '{"try":"2"}'):
        assert words in shown, shown
    left = service.call("GET", "/v1/sessions").json["sessions"]
    assert [session["metadata"] for session in left] == [{"try": "2"}]
    service.call("DELETE", f"/v1/sessions/{left[0]['id']}")


def test_the_files_of_sessions(service, tmp_path):
    session = service.call("POST", "/v1/sessions", {"policy": "minimal"}).json["id"]
    (tmp_path / "data.csv").write_text("a\n1\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src/one.py").write_text("1\n")
    service.call("PUT", f"/v1/sessions/{session}/files//tmp/plot.png", b"\x89PNG")
    done = subprocess.run(["bash", "-c", f"set -euo pipefail; id={session}\n{one_with('docs/sessions.md', 'sh', 'plot.png')}"], cwd=tmp_path,
                          capture_output=True, timeout=60, check=False, env=environment_of(service))
    assert done.returncode == 0 and (tmp_path / "plot.png").read_bytes() == b"\x89PNG", done
    listed = service.call("POST", f"/v1/sessions/{session}/files:list", {"path": "", "depth": 3}).json["entries"]
    assert {"in/data.csv", "src/one.py"} <= {entry["path"] for entry in listed}, listed
    service.call("DELETE", f"/v1/sessions/{session}")


@pytest.mark.parametrize(("page", "word", "status"), [("precheck", "--policy prechecked -c", 126), ("output-validation", "number.json", 65)])
def test_a_block_prints_what_stands_behind_its_commands(glovebox, python_template, tmp_path, page, word, status):
    block = one_with(f"docs/{page}.md", "sh", word)
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "prechecked.yaml").write_text(one_with("docs/precheck.md", "yaml", "name: prechecked"))
    done = subprocess.run(["bash", "-c", block], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                          check=False, env=glovebox.environment({"GLOVEBOX_POLICIES": f"{folder}:{BUILD}/policies",
                                                                 "PATH": f"{BUILD}:{os.environ['PATH']}"}))
    assert done.returncode == status and done.stdout == "".join(re.findall(r"^# (.*\n)", block, re.MULTILINE)), done


def test_the_json_of_a_finding(glovebox, python_template, tmp_path):
    """docs/precheck.md: `checks` of the run above it, in its order."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/prechecked.yaml").write_text(one_with("docs/precheck.md", "yaml", "name: prechecked"))
    said = one_with("docs/precheck.md", "json", '"checks"')
    code = re.search(r"-c '(.*)'", one_with("docs/precheck.md", "sh", "--policy prechecked -c"))[1]
    result = json.loads(glovebox.run("--json", "--policy", "prechecked", "-c", code,
                                     env={"GLOVEBOX_POLICIES": f"{tmp_path}/policies:{BUILD}/policies"}).stdout)
    assert list_of_members(result["checks"]) == list_of_members(json.loads(f"{{{said}}}")["checks"])


def test_the_json_of_a_verdict(service, tmp_path):
    """docs/output-validation.md."""
    page = "docs/output-validation.md"
    done = subprocess.run(["bash", "-c", one_with(page, "sh", "jq .gate")], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                          check=False, env=environment_of(service))
    assert done.returncode == 0, done
    assert list_of_members(json.loads(done.stdout)) == list_of_members(json.loads(one_with(page, "json", '"verdict"')))


def list_of_members(answer):
    """In their order, without what differs from run to run."""
    return [(name, value) for name, value in answer.items() if name not in ("took_ms", "expectation")]


@pytest.mark.parametrize(("has", "fails", "built", "status"), [
    ("", "", ["template build python"], 0),
    ("", "1", ["template build python", "template build python-small --name python"], 0),
    ("", "130", ["template build python"], 130),
    ("1", "1", [], 0)], ids=["built", "no index", "interrupted", "there"])
def test_make_run_falls_back_to_debians_packages(tmp_path, has, fails, built, status):
    """A stand-in for the command writes down what it is asked for."""
    program = tmp_path / "glovebox"
    program.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\n'
                       f'case "$*" in "template show python") [ "{has}" ];; "template build python") exit {fails or 0};; esac\n')
    program.chmod(0o755)
    done = subprocess.run([TOP / "tools/run_example", tmp_path, tmp_path / "out"], capture_output=True, text=True, timeout=60, check=False)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert done.returncode == status, done
    assert [line for line in asked if line.startswith("template build")] == built
    assert ("building python-small, from Debian's packages alone" in done.stdout) == (len(built) == 2)
    assert any(line.startswith("run ") for line in asked) == (status == 0)


def test_every_soak_program_has_a_target_that_is_explained():
    makefile = (TOP / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    programs = [path.name for path in (TOP / "tests/soak").glob("*.py") if path.read_text().startswith("#!")]
    assert len(programs) >= 8
    for name in programs:
        target = re.search(r"^# .*\n(?:.* = .*\n|.* \?= .*\n)*([a-z-]+): all\n\t@/usr/bin/python3 -B tests/soak/" + name, makefile, re.MULTILINE)
        assert target and target[1] in phony, name

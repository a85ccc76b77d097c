"""Explanations of policies: the line that sets each value, files of cases, the text for a model, the definition of its
tool."""

import json
import re

import jsonschema
import pytest
from conftest import BUILD

CAREFUL = """name: careful
extends: data
template: minimal
description: For this test.
limits: {wall: 5s}
precheck:
  subprocess: deny
  modules:
    deny: [ctypes]
    ask: [csv]
"""
CODE = """import os
import csv
os.system("id")
while True:
    pass
import ctypes
"""


@pytest.fixture
def policies(tmp_path):
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "careful.yaml").write_text(CAREFUL)
    return folder


@pytest.fixture
def environment(policies):
    from conftest import TOP
    return {"GLOVEBOX_POLICIES": f"{policies}:{TOP / 'policies'}"}


def test_each_value_has_the_line_that_says_it(glovebox, policies, environment):
    done = glovebox("policy", "explain", "--policy", "careful", "--json", env=environment)
    assert done.returncode == 0, done
    answer = json.loads(done.stdout)
    assert [file.rsplit("/", 1)[-1] for file in answer["files"]] == ["careful.yaml", "data.yaml", "minimal.yaml"]
    grants = {row["key"]: (row["value"], row["file"] and row["file"].rsplit("/", 1)[-1], row["file_line"])
              for row in answer["grants"]}
    for key, (value, file, line) in grants.items():
        if file is None:
            continue
        path = next(path for path in answer["files"] if path.endswith(file))
        text = open(path, encoding="utf-8").read().splitlines()[line - 1]
        word = key.split()[-1].split(".")[-1]
        assert word in text or word in ("network",), (key, file, line, text)
    assert grants["limits.wall"] == ("5 s", "careful.yaml", 5)
    assert grants["maximum.wall"][1] == "data.yaml" and grants["languages"][1] == "minimal.yaml"
    assert grants["limits.cpus"] == ("not limited", None, None)
    assert grants["precheck.subprocess"] == ("deny", "careful.yaml", 7)
    assert grants["precheck.modules csv"] == ("ask", "careful.yaml", 10)
    assert grants["precheck.endless"] == ("warn", None, None)


def test_a_pending_approval_is_reported(glovebox, policies, environment):
    (policies / "below.yaml").write_text("name: below\nextends: minimal\napproval: {when: [network], expires: 5m}\n")
    (policies / "asks.yaml").write_text("name: asks\nextends: below\napproval:\n  when: [always]\n  by: out_of_band\n  expires: 1h\n")
    done = glovebox("policy", "explain", "--policy", "asks", "--json", env=environment)
    assert [(row["key"], row["value"], row["file"] and row["file"].rsplit("/", 1)[-1], row["file_line"])
            for row in json.loads(done.stdout)["grants"] if row["key"].startswith("approval")] == [
        ("approval.when", "always", "asks.yaml", 4), ("approval.when", "network", "below.yaml", 3),
        ("approval.by", "out_of_band", "asks.yaml", 5), ("approval.scopes", "once, code, session", None, None),
        ("approval.expires", "5 min", "below.yaml", 3)]
    (policies / "above.yaml").write_text("name: above\nextends: asks\napproval: {when: [always], by: terminal}\n")
    above = glovebox("policy", "explain", "--policy", "above", env=environment).stdout.decode()
    assert any(line.split()[:2] == ["approval.by", "out_of_band"] and line.endswith("asks.yaml:5") for line in above.splitlines())
    shown = glovebox("policy", "show", "asks", env=environment).stdout.decode()
    assert "approval         when always, network; by out_of_band; scopes once, code, session; expires 5 min\n" in shown
    assert "approval         none\n" in glovebox("policy", "show", "minimal", env=environment).stdout.decode()


def test_each_finding_has_the_line_that_decides(glovebox, tmp_path, environment):
    script = tmp_path / "script.py"
    script.write_text(CODE)
    done = glovebox("policy", "explain", "--policy", "careful", "--code", script, "--json", env=environment)
    assert done.returncode == 126, done
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "denied"
    assert [(row["line"], row["rule"], row["decision"], row["file_line"]) for row in answer["findings"]] == [
        (2, "module", "ask", 10), (3, "subprocess", "deny", 7), (4, "endless", "warn", None),
        (6, "native", "deny", 9)]
    done = glovebox("policy", "explain", "--policy", "careful", "--code", script, env=environment)
    assert done.returncode == 126 and b"script.py:3: starts other programs: os.system\n" in done.stdout
    assert b"careful.yaml:7\n" in done.stdout and b"verdict: deny" in done.stdout
    done = glovebox("policy", "explain", "--policy", "data", "--code", script, env=environment)
    assert done.returncode == 0 and b"verdict: allow" in done.stdout, done


def test_cases_say_what_is_expected_of_a_policy(glovebox, tmp_path, environment):
    (tmp_path / "script.py").write_text(CODE)
    cases = tmp_path / "cases.yaml"
    right = """policy: careful
cases:
  - {name: no shells, code: "import os; os.system('id')", expect: deny}
  - {name: tables, code: "import csv", expect: ask}
  - {name: hello, code: print(1), expect: allow}
  - {name: a shell script, language: bash, code: "curl x", expect: warn}
  - {name: beside the cases, file: script.py, expect: deny}
  - {name: an hour, limits: {wall: 1h}, expect: deny}
  - {name: a minute, limits: {wall: 1m}, expect: allow}
  - {name: another language, language: ruby, code: puts 1, expect: deny}
  - name: a block
    code: |
      while True:
          pass
    expect: warn
"""
    cases.write_text(right)
    done = glovebox("policy", "test", cases, env=environment)
    assert done.returncode == 0 and done.stderr == b"", done
    assert done.stdout.decode().splitlines()[-1] == "policy careful: 9 of 9 cases as expected"
    cases.write_text(right.replace("code: print(1), expect: allow", "code: print(1), expect: deny"))
    done = glovebox("policy", "test", cases, env=environment)
    assert done.returncode == 1 and b"WRONG hello: allow, expected deny\n" in done.stdout, done
    told = glovebox("policy", "test", cases, "--json", env=environment)
    rows = json.loads(told.stdout)
    assert told.returncode == 1 and len(rows) == 9 and [row["name"] for row in rows if not row["ok"]] == ["hello"], told
    assert [(row["decision"], row["expected"], row["why"]) for row in rows if row["name"] == "hello"] == [("allow", "deny", None)]


@pytest.mark.parametrize("text, says", [
    ("cases: []\n", "1:1: write policy: NAME and cases: [{...}]"),
    ("policy: careful\ncases: []\n", "1:1: write policy: NAME and cases: [{...}]"),
    ("policy: careful\ncases: [{file: none.py, expect: ask}]\n", "/none.py': No such file or directory; check the name\n"),
    ("policy: careful\ncases: [{code: x}]\n", "2:9: the case has no 'expect'"),
    ("policy: careful\ncases: [{code: x, expect: no}]\n", "2:27: expect is allow, warn, ask or deny"),
    ("policy: careful\ncases: [{code: x, file: y, expect: ask}]\n", "2:9: give code or file, not both"),
    ("policy: careful\ncases: [{cod: x, expect: ask}]\n", "2:10: a case has name, code, file"),
    ("policy: careful\ncases: [{limits: {wal: 1s}, expect: ask}]\n", "2:19: no limit"),
    ("policy: none\ncases: [{limits: {wall: 1s}, expect: ask}]\n", "there is no policy 'none'"),
    ("- a\n", "1:1: no mapping"),
])
def test_a_wrong_test_case_file_is_reported_with_line_and_column(glovebox, tmp_path, environment, text, says):
    (tmp_path / "cases.yaml").write_text(text)
    done = glovebox("policy", "test", tmp_path / "cases.yaml", env=environment)
    assert done.returncode == 125 and says in done.stderr.decode(), done


def test_the_text_for_a_model_says_what_holds(glovebox, environment):
    text = glovebox("prompt", "--policy", "careful", env=environment).stdout.decode()
    shown = json.loads(glovebox("policy", "show", "careful", "--json", env=environment).stdout)
    assert re.search(r"Languages: python, bash\.\nVersions: python 3\.\d+\.\d+\.\n", text) and "Network: none." in text and "/workspace" in text
    assert "- wall: 5 s (" in text and "up to 10 min may be asked for" in text
    assert shown["limits"]["wall_ms"] == 5000 and shown["maximum"]["wall_ms"] == 600000
    assert "- It is refused if it: starts other programs; " in text and "imports ctypes.\n" in text
    assert "- A person is asked first if it: imports csv.\n" in text
    plain = glovebox("prompt", "--policy", "minimal", env=environment).stdout.decode()
    assert "looked at" not in plain and "may be asked for" not in plain


def test_the_text_for_a_model_names_credentials_only_where_there_are_some(glovebox, tmp_path):
    (tmp_path / "out.yaml").write_text("""name: out
extends: data
network:
  endpoints:
    models: {url: "http://localhost:8099", paths: ["/api/"]}
    github: {url: "https://api.github.example", headers: [Authorization]}
""")
    text = glovebox("prompt", "--policy", "out", env={"GLOVEBOX_POLICIES": f"{tmp_path}:{BUILD}/policies"}).stdout.decode()
    assert "- http://models.endpoint/ leads to the service 'models'\n" in text
    assert "- http://github.endpoint/ leads to the service 'github'; its credentials are added outside of the sandbox\n" in text


def schemas_of(answer):
    return {
        "openai": lambda: answer[0]["function"]["parameters"],
        "anthropic": lambda: answer[0]["input_schema"],
        "mcp": lambda: answer["tools"][0]["inputSchema"],
        "openapi": lambda: answer["paths"]["/v1/runs"]["post"]["requestBody"]["content"]["application/json"]["schema"],
    }


@pytest.mark.parametrize("form", ["openai", "anthropic", "mcp", "openapi"])
def test_definitions_hold_what_the_policy_allows(glovebox, environment, form):
    done = glovebox("manifest", "--format", form, "--policy", "data", env=environment)
    assert done.returncode == 0 and done.stderr == b"", done
    schema = schemas_of(json.loads(done.stdout))[form]()
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    more = {"policy": "data"} if form == "openapi" else {}
    good = {"code": "print(1)", "language": "python", "limits": {"wall_ms": 600000, "cpus": 0.5}} | more
    assert check.is_valid(good)
    for bad in ({"limits": {"wall_ms": 600001}}, {"limits": {"memory_bytes": 1}}, {"language": "ruby"}, {"code": ""},
                {"shell": True}, {"limits": {"wall": "1s"}}, {"limits": {"wall_ms": 1.5}}):
        assert not check.is_valid(good | bad), bad
    assert not check.is_valid({"language": "python"} | more)


def test_what_the_schema_accepts_is_accepted(glovebox, environment):
    """Every limit at its bounds, as the schema gives them, is granted by the policy."""
    done = glovebox("manifest", "--format", "anthropic", "--policy", "careful", env=environment)
    limits = json.loads(done.stdout)[0]["input_schema"]["properties"]["limits"]["properties"]
    shown = json.loads(glovebox("policy", "show", "careful", "--json", env=environment).stdout)
    for name, schema in limits.items():
        most = shown["maximum"][name]
        assert schema["maximum"] == most or most == 0, name
        assert schema["default"] == shown["limits"][name], name


@pytest.mark.parametrize("arguments, says", [
    (["manifest"], "say for whom: --format openai, anthropic, mcp or openapi"),
    (["manifest", "--format", "soap"], "--format is openai, anthropic, mcp or openapi, not 'soap'"),
    (["manifest", "--format", "mcp", "x"], "manifest takes no 'x'; see glovebox manifest --help"),
    (["prompt", "x"], "prompt takes no 'x'; see glovebox prompt --help"),
    (["policy", "explain", "x"], "policy explain takes no 'x'; see glovebox policy explain --help"),
    (["policy", "test"], "policy test takes one file of cases; see glovebox policy test --help"),
])
def test_slips_are_answered_in_one_line(glovebox, environment, arguments, says):
    done = glovebox(*arguments, env=environment)
    assert done.stderr.decode() == f"glovebox: {says}\n" and done.returncode in (125, 126) and done.stdout == b""


@pytest.mark.parametrize("words", [["prompt"], ["manifest", "--format", "mcp"]], ids=lambda words: words[0])
def test_a_policy_that_is_nowhere_is_answered_with_the_folders(glovebox, environment, words):
    done = glovebox(*words, "--policy", "none", env=environment)
    assert done.returncode == 125 and done.stdout == b"" and done.stderr.startswith(
        b"glovebox: there is no policy 'none'; see glovebox policy list; looked in "), done

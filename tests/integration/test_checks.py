"""The look at code before it runs: what it finds, what happens to it, and what a lint cannot see.

The checker reads text that its author wrote to mislead it. Whatever it makes of that, a run either gets an answer
that names what was found, or is refused because there was none."""

import base64
import concurrent.futures
import http.client
import hashlib
import json
import pathlib
import shutil
import socket
import subprocess
import sys

import failing_templates
import pytest
import session_rig
from conftest import STATE, TOP, Glovebox

POLICIES = {
    "lint": """name: lint
extends: data
template: minimal
precheck: {}
""",
    "strict": """name: strict
extends: data
template: minimal
precheck:
  network: deny
  subprocess: deny
  native: deny
  dynamic: deny
  internals: deny
  environment: deny
  endless: deny
  allocation: deny
  modules: {allow: [json, math, os, sys, base64], deny: [ctypes], ask: [csv], others: deny}
""",
    "asks": """name: asks
extends: lint
precheck: {environment: ask, unchecked: allow}
""",
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    folder = tmp_path_factory.mktemp("d")
    policies = folder / "policies"
    policies.mkdir()
    for name, text in POLICIES.items():
        (policies / f"{name}.yaml").write_text(text)
    for file in (TOP / "policies").glob("*.yaml"):
        (policies / file.name).write_text(file.read_text())
    started = session_rig.Daemon(Glovebox(folder), folder, policies=str(policies))
    started.policies = policies
    yield started
    started.stop()


def submit(daemon, code, policy="strict", **request):
    status, answer = daemon.call("POST", "/v1/runs", {"code": code, "policy": policy, "language": "python"} | request)
    assert status == 200, answer
    return answer


def found(result):
    return {(row["rule"], row["line"], row["decision"]) for row in result["checks"]["findings"]}


def rules(result):
    return {row["rule"] for row in result["checks"]["findings"]}


# What is written openly, by whatever name. Each is refused by policy strict, and nothing of it runs.
OPEN = [
    ("import ctypes", "native", 1),
    ("import os\nimport ctypes.util as harmless", "native", 2),
    ("from ctypes import *", "native", 1),
    ("__import__('ctypes')", "native", 1),
    ("__import__('cty' 'pes')", "native", 1),
    ("__import__('cty' + 'pes')", "native", 1),
    ("import importlib as i\ni.import_module('ctypes')", "native", 2),
    ("import os\nos.system('id')", "subprocess", 2),
    ("import os as o\no.system('id')", "subprocess", 2),
    ("from os import system as fine\nfine('id')", "subprocess", 1),
    ("import os\nf = os.system\nf('id')", "subprocess", 2),
    ("import os\ngetattr(os, 'system')('id')", "subprocess", 2),
    ("import os\ngetattr(os, 'sys' + 'tem')('id')", "subprocess", 2),
    ("import os\ngetattr(os, 'metsys'[::-1])('id')", "dynamic", 2),
    ("__builtins__.__import__('os')", "dynamic", 1),
    ("exec('import ctypes')", "dynamic", 1),
    ("import base64\nexec(base64.b64decode('aW1wb3J0IGN0eXBlcw=='))", "dynamic", 2),
    ("e = eval\ne('1')", "dynamic", 1),
    ("(lambda: eval)()('1')", "dynamic", 1),
    ("[].__class__.__base__.__subclasses__()", "internals", 1),
    ("(lambda: 0).__globals__['os']", "internals", 1),
    ("import os\nprint(os.environ)", "environment", 2),
    ("import os\nos.environ['A'] = os.environ['B']", "environment", 2),
    ("import os\nos.environ['A'] += 'x'", "environment", 2),
    ("import os\nos.environ[os.environ['B']] = 'x'", "environment", 2),
    ("import os\nos.environ.copy()['A'] = 'x'", "environment", 2),
    ("open('/proc/self/environ')", "environment", 1),
    ("import socket", "network", 1),
    ("import urllib.request", "network", 1),
    ("from urllib import request", "network", 1),
    ("while True:\n    pass", "endless", 1),
    ("while 1:\n    for x in 'a':\n        break", "endless", 1),
    ("import itertools\nfor i in itertools.count():\n    pass", "endless", 2),
    ("x = bytearray(10 ** 10)", "allocation", 1),
    ("x = 'a' * 1000000000", "allocation", 1),
    ("x = 9 ** 9 ** 9", "allocation", 1),
    ("# -*- coding: rot13 -*-\nvzcbeg pglcrf", None, None),  # no code of text: Python itself refuses it
    ("# -*- coding: utf-7 -*-\n+AGkAbQBwAG8AcgB0- ctypes", "native", 2),
    ("ｉｍｐｏｒｔ ctypes", "syntax", 1),
    ("import ｃｔｙｐｅｓ", "native", 1),  # full width: Python reads it as ctypes
]


def test_plain_code_is_found(daemon):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda row: submit(daemon, row[0]), OPEN))
    for (code, rule, line), result in zip(OPEN, results):
        assert result["status"] == "denied" and result["fault"] == "policy", (code, result)
        assert result["exit_code"] is None and result["stdout"] == "" and result["usage"]["cpu_ms"] == 0, code
        assert result["checks"]["decision"] == "deny" and result["checks"]["failure"] is None, (code, result)
        if rule:
            assert (rule, line, "deny") in found(result), (code, result["checks"])
            assert any(row["layer"] == "precheck" for row in result["denials"]), code


# What a lint cannot see, as docs/precheck.md says it: the sandbox is what holds here.
def test_what_a_lint_cannot_see_runs_in_the_sandbox_all_the_same(daemon):
    file = {"path": "helper.py", "content": "import os\ndef go():\n    return os.system('exit 3')\n"}
    result = submit(daemon, "import helper\nprint(helper.go() >> 8)", policy="lint", files=[file])
    assert result["status"] == "ok" and result["stdout"] == "3\n" and result["checks"]["findings"] == [], result


def test_ordinary_code_passes_and_pays_for_nothing_else(daemon):
    result = submit(daemon, "import json, math\nwhile True:\n    break\nprint(json.dumps(math.pi > 3))")
    assert result["status"] == "ok" and result["stdout"] == "true\n"
    assert result["checks"]["decision"] == "allow" and result["checks"]["findings"] == []
    result = submit(daemon, "import os\nos.environ['MPLBACKEND'] = 'Agg'\nprint(2)", policy="lint")
    assert result["stdout"] == "2\n" and result["checks"]["findings"] == [], "an assignment reads nothing"
    result = submit(daemon, "print(1)", policy="data", template="minimal")
    assert result["status"] == "ok" and result["checks"] is None


def test_warnings_go_along_with_a_run(daemon):
    result = submit(daemon, "import os\nos.system('echo hi')\nprint(os.environ['HOME'])", policy="lint")
    assert result["status"] == "ok" and result["stdout"] == "hi\n/home/user\n"
    assert found(result) == {("subprocess", 2, "warn"), ("environment", 3, "warn")}
    assert result["checks"]["decision"] == "warn" and result["denials"] == []


def test_modules_are_decided_by_lists(daemon):
    result = submit(daemon, "import json\nimport csv\nimport os.path\nimport ctypes\nimport colorsys")
    assert found(result) == {("module", 2, "ask"), ("native", 4, "deny"), ("module", 5, "deny")}


def test_ask_waits_for_an_approval(daemon):
    request = {"code": "import os\nprint(os.getenv('HOME'))", "policy": "asks", "language": "python"}
    status, result = daemon.call("POST", "/v1/runs", request)
    assert status == 202 and result["status"] == "pending_approval" and result["approval"], result
    assert result["checks"]["decision"] == "ask" and result["stdout"] == ""


HOSTILE = {
    "nul": "print(1)\0import ctypes",
    "deep brackets": "(" * 5000 + ")" * 5000,
    "deep minus": "-" * 100000 + "1",
    "deep plus": "+".join("1" for _ in range(50000)),
    "deep attributes": "a" + ".b" * 50000,
    "deep lambdas": "lambda: " * 50000 + "1",
    "deep blocks": "".join(" " * depth + "if a:\n" for depth in range(200)),
    "deep elif": "if a:\n  pass\n" + "elif a:\n  pass\n" * 20000,
    "ten million bytes": "x = 1\n" * (10 * 1024 * 1024 // 6 - 1),
    "more findings than can be told": "eval\n" * 1500 + "import ctypes\n",
    "a flood of names": "import " + "x" * 100000,
    "a protocol in a name": "import a\nend\u2028 0\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_denies_and_never_hangs(daemon, name):
    status, answer = daemon.call("POST", "/v1/runs", {"code": HOSTILE[name], "policy": "strict", "language": "python"})
    if status == 200:
        assert answer["status"] == "denied" and answer["stdout"] == "", answer["checks"]
        assert answer["checks"]["decision"] == "deny"
        assert answer["checks"]["failure"] or answer["checks"]["findings"]
    else:
        assert status in (400, 413) and answer["error"]["message"], answer
    assert daemon.call("GET", "/healthz")[0] == 200


def test_text_that_is_none_is_refused_before_it_is_checked(daemon):
    connection = http.client.HTTPConnection("localhost", timeout=60)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(daemon.path)
    connection.request("POST", "/v1/runs", b'{"policy": "strict", "code": "x = \'\xff\xfe\'"}')
    assert connection.getresponse().status == 400
    connection.close()


def test_bash_is_read_as_the_shell_reads_it(daemon):
    code = """# curl in a comment
echo "wget in a text" 'ssh in another'
cat <<END
nc is no command here
END
x=$(curl -s "http://a.example/$(dig a.example)")
while true; do x=1; done
while :; do if true; then break; fi; done
$HOME/x
ev""al "$x"
: < /dev/tcp/192.0.2.1/80
"""
    result = submit(daemon, code, policy="lint", language="bash", limits={"wall_ms": 1})
    assert found(result) == {("network", 6, "warn"), ("endless", 7, "warn"), ("dynamic", 9, "warn"),
                             ("dynamic", 10, "warn"), ("network", 11, "warn")}, result["checks"]
    result = submit(daemon, "if true; then\necho never\n", policy="lint", language="bash")
    assert result["status"] == "denied" and rules(result) == {"syntax"} and result["stdout"] == ""
    result = submit(daemon, ":(){ :|:& };:", policy="strict", language="bash")
    assert result["status"] == "denied" and "endless" in rules(result)
    result = submit(daemon, "echo $(" * 5000, policy="lint", language="bash")
    assert result["status"] == "denied"
    result = submit(daemon, "echo ok", policy="strict", language="bash")
    assert result["status"] == "ok" and result["checks"]["findings"] == []


def test_a_command_cannot_be_looked_at(daemon):
    status, result = daemon.call("POST", "/v1/runs", {"command": ["true"], "policy": "lint"})
    assert status == 200 and result["status"] == "denied" and rules(result) == {"unchecked"}
    status, result = daemon.call("POST", "/v1/runs", {"command": ["true"], "policy": "asks"})
    assert status == 200 and result["status"] == "ok", result


def test_the_digest_of_a_policy_is_that_of_its_canonical_form(daemon):
    """Also of one with `precheck`, whose rules are written by name (RFC 8785)."""
    rows = daemon.call("GET", "/v1/policies")[1]["policies"]
    assert any("precheck" in row["policy"] for row in rows)
    for row in rows:
        canonical = json.dumps(row["policy"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert row["digest"] == "sha256:" + hashlib.sha256(canonical.encode()).hexdigest(), row["name"]


def test_a_receipt_has_rules_and_lines_and_no_text(daemon):
    planted = "planted_name_4711"
    result = submit(daemon, f"import json\n\nimport {planted}")
    status, receipt = daemon.call("GET", f"/v1/receipts/{result['receipt']}")
    assert status == 200
    text = base64.b64decode(receipt["payload"]).decode() if "payload" in receipt else json.dumps(receipt)
    predicate = json.loads(text)["predicate"]
    assert predicate["checks"] == {"decision": "deny", "unlisted": 0,
                                   "findings": [{"decision": "deny", "line": 3, "rule": "module"}]}
    assert predicate["outcome"]["status"] == "denied" and planted not in text
    log = pathlib.Path(daemon.folder, "log").read_text()
    assert planted not in log


def test_cells_are_checked_in_their_order(daemon):
    session = daemon.session(policy="strict")
    assert session.run("import json\nx = 41")["status"] == "ok"
    refused = session.run("import ctypes\nx = 0")
    assert refused["status"] == "denied" and ("native", 1, "deny") in found(refused), refused
    assert session.value("x + 1") == "42", "a cell that was refused has run"
    for line in ("!id", "%sx id", "x = %sx id", "%time import os; os.system('id')", "%%time\n!id", "%cd {eval('1')}"):
        assert session.run(line)["status"] == "denied", f"{line} ran without a look"
    assert rules(session.run("%nosuch id")) == {"unchecked"}, "what a magic that nobody knows does is not known"
    assert session.run("%time y = 1")["status"] == "ok"
    hidden = session.run("# coding: utf-7\n# +AAo-import ctypes")
    assert hidden["status"] == "denied", "a cell is looked at in another encoding than it runs in"
    status, answer = session.call("POST", "/processes", {"cmd": "id"})
    assert status in (400, 403), answer
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        codes = ["y = []"] + [f"y.append({i})" if i % 2 else "import ctypes" for i in range(6)]
        first = pool.submit(session.run, codes[0]).result()
        assert first["status"] == "ok"
        list(pool.map(session.run, codes[1:]))
    assert sorted(json.loads(session.value("y"))) == [1, 3, 5]
    session.end()


def test_a_run_that_is_cancelled_while_it_is_checked_leaves_nothing(daemon):
    code = "a;" * 400000
    status, answer = daemon.call("POST", "/v1/runs?", {"code": "print(1)", "policy": "strict"})
    assert status == 200
    response = daemon.open("POST", "/v1/runs", {"code": code, "policy": "strict"}, {"Prefer": "respond-async"})
    assert response.status == 202
    run = json.loads(response.read())["id"]
    status, answer = daemon.call("DELETE", f"/v1/runs/{run}")
    assert status == 200 and answer["status"] in ("cancelled", "denied"), answer
    daemon.idle()


def test_private_runs_are_checked_too(daemon, glovebox):
    done = glovebox.run("--policy", "strict", "-c", "import ctypes\nprint(1)",
                        env={"GLOVEBOX_POLICIES": str(daemon.policies)})
    assert done.returncode == 126 and done.stdout == b"", done
    assert b"refused: precheck line 1, ctypes: calls native code" in done.stderr, done.stderr


def test_the_policy_in_use_is_reported(daemon, glovebox):
    env = {"GLOVEBOX_POLICIES": "/nowhere"}
    done = glovebox("run", "--daemon", daemon.path, "--policy", "strict", "-c", "print(1)", env=env)
    assert (done.returncode, done.stdout) == (0, b"1\n"), done.stderr
    assert done.stderr == (f"glovebox: GLOVEBOX_POLICIES is not used: policies are those of the daemon at {daemon.path}; "
                           "--private uses yours\n").encode()
    assert glovebox("check", "--daemon", daemon.path, "--policy", "strict", "-c", "1", env=env).stderr == done.stderr
    done = glovebox("run", "--daemon", daemon.path, "--policy", "none", "-c", "print(1)")
    assert done.returncode == 125 and f"the policies of the daemon at {daemon.path}, --private uses yours\n".encode() in done.stderr
    done = glovebox("run", "--verbose", "--daemon", daemon.path, "--policy", "strict", "-c", "print(1)")
    assert f"policy strict, as the daemon has it at {daemon.path}\n".encode() in done.stderr


def test_check_runs_no_code(daemon, glovebox, tmp_path):
    env = {"GLOVEBOX_POLICIES": str(daemon.policies)}
    script = tmp_path / "script.py"
    script.write_text("import os\nos.system('touch /workspace/made')\nprint('never')\n")
    done = glovebox("check", "--daemon", daemon.path, "--policy", "strict", script)
    assert done.returncode == 126 and done.stderr == b"", done
    assert done.stdout.decode().splitlines() == [
        f"{script}:2: deny: starts other programs: os.system [subprocess]", f"{script}: policy strict: deny"]
    done = glovebox("check", "--private", "--policy", "minimal", "-", stdin=script.read_bytes(), env=env)
    assert done.returncode == 0 and b"code:2: warn: starts other programs" in done.stdout, done
    done = glovebox("check", "--daemon", daemon.path, "--json", "-c", "print(1)", env=env)
    assert done.returncode == 0 and json.loads(done.stdout)["decision"] == "allow"

    status, answer = daemon.call("POST", "/v1/runs", {"code": "print(1)", "policy": "data", "template": "minimal",
                                                      "check_only": True})
    assert status == 200 and answer["status"] == "ok" and answer["stdout"] == "" and answer["usage"]["cpu_ms"] == 0
    assert answer["checks"]["decision"] == "allow"


@pytest.mark.parametrize("arguments, says", [
    ([], "give one file, - for stdin, or -c CODE"),
    (["-c", "1", "x"], "give one file, - for stdin, or -c CODE"),
    (["/nowhere.py"], "/nowhere.py"),
])
def test_slips_are_answered_in_one_line(glovebox, arguments, says):
    done = glovebox("check", "--private", *arguments)
    assert done.returncode in (125, 126) and done.stderr.startswith(b"glovebox: ") and says in done.stderr.decode()


def test_the_checker_of_bash_finds_commands_behind_something_else(tmp_path):
    """By itself, as that of JavaScript below."""
    checkers = TOP / "src/engine/review/precheckers"
    (tmp_path / "checker.py").write_text((checkers / "report.py").read_text() + (checkers / "bash.py").read_text())

    def look(text):
        (tmp_path / "checked").write_text(text)
        done = subprocess.run([sys.executable, tmp_path / "checker.py", tmp_path / "checked", "script"],
                              capture_output=True, text=True, timeout=60, check=True)
        return {row.split(" ")[0] for row in done.stdout.splitlines()[:-1]}

    for code in [">/dev/null curl x", "2>&1 curl x", "cat <<<x\ncurl x", "cat <<< $(curl x)", "cat <<E\n$(curl x)\nE",
                 "timeout -s KILL 5 curl x", "nice -n 5 curl x", "function f { curl x; }", "((curl x); true)",
                 "((x = $(curl x)))", "exec -a y curl x", "exec 3<>/dev/tcp/a/1"]:
        assert look(code) == {"network"}, code
    assert look("{curl,x}") == {"dynamic"}
    for code in ["cat <<'E'\n$(curl x)\nE", "cat <<E\ncurl x\n\\$(curl x)\nE", "echo >curl", "timeout 5 grep curl x",
                 "echo $((1 + 2))", "((x = (1 + 2)))", "for ((i = 0; i < 3; i++)); do echo $i; done", "[[ -n $x ]] && echo x"]:
        assert look(code) == set(), code


def test_the_checker_of_bash_finds_arithmetic_behind_a_keyword_without_a_blank(tmp_path):
    checkers = TOP / "src/engine/review/precheckers"
    (tmp_path / "checker.py").write_text((checkers / "report.py").read_text() + (checkers / "bash.py").read_text())

    def look(text):
        (tmp_path / "checked").write_text(text)
        done = subprocess.run([sys.executable, tmp_path / "checker.py", tmp_path / "checked", "script"],
                              capture_output=True, text=True, timeout=60, check=True)
        return [row.split(" ")[0::4] for row in done.stdout.splitlines()[:-1]]

    for loop in ["for((;;))", "for ((;;))", "for(( ; ; ))", "for((i=0;;i++))", "for ((i = 0; 1; i++))", "while((1))", "while ((1))",
                 "while (( 1 ))", "until((0))", "until (( 0 ))", "while(true)", "while ( : )", "while\ntrue\n", "while ! false",
                 "until ! true", "while [[ 1 ]]", "until [ ]"]:
        name = loop[:5].rstrip("( ")
        semicolon = "" if loop.endswith(("))", "\n")) else ";"
        assert look(f"{loop}{semicolon} do x; done") == [["endless", name]], loop
        assert look(f"if y; then\n{loop};do x;done; fi".replace("\n;", "\n")) == [["endless", name]], loop
        assert look(f"{loop}{semicolon} do break; done") == [], loop
    assert look("for((;;)) { x; }") == [["endless", "for"]]
    for code in ["if((x)); then y; fi", "if((curl)); then y; elif((curl)); then y; fi", "while((i++ < 3)); do y; done",
                 "until((x > curl)); do y; done", "for((i = 0; i < 3; i++)); do y; done", "!((curl))", "time((curl))",
                 "while(read x); do y; done", "x | while\nread x\ndo y; done"]:
        assert look(code) == [], code
    for code in ["if((x)); then curl y; fi", "if((x)) then curl y; fi", "while((i++ < 3)); do curl y; done", "while\ncurl y; do z; done",
                 "while(curl y); do z; done", "if((x = $(curl y))); then z; fi", "for((i = 0; i < 3; i++)) { curl y; }"]:
        assert look(code) == [["network", "curl"]], code


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node, as the template of that name has it")
def test_the_checker_of_javascript_finds_what_is_written_openly(tmp_path):
    """By itself: it is what runs in a sandbox of the template node."""
    def look(text):
        (tmp_path / "checked").write_text(text)
        done = subprocess.run(["node", TOP / "src/engine/review/precheckers/javascript.js", tmp_path / "checked", "script"],
                              capture_output=True, text=True, timeout=60, check=True)
        *lines, end = done.stdout.splitlines()
        assert end == f"end {len(lines)}"
        return {(rule, int(line), subject) for rule, line, _, _, subject in (row.split(" ", 4) for row in lines)}

    assert look('const c = require("node:child_process");\nimport("ht" + "tp");\neval("1");\nnew Function("a");') == {
        ("subprocess", 1, "child_process"), ("network", 2, "http"), ("dynamic", 3, "eval"), ("dynamic", 4, "Function")}
    assert look('while (true) { for (;;) { break; } }\nfor (;;) { if (a) break; }\nBuffer.alloc(10 ** 10);') == {
        ("endless", 1, "while"), ("allocation", 3, "Buffer.alloc")}
    assert look('process["en" + "v"].A;\n({}).constructor.constructor("x");') == {
        ("environment", 1, "process.env"), ("dynamic", 2, "constructor.constructor")}
    assert look('process.getBuiltinModule("net");\nmodule.require("vm");\nmodule.require(x);') == {
        ("network", 1, "net"), ("dynamic", 2, "vm"), ("dynamic", 3, "module.require")}
    assert look('import fs from "fs";\nawait fs.promises.readFile("a");') == {("module", 1, "fs")}
    assert {row[0] for row in look("let x = (;")} == {"syntax"}
    assert {row[0] for row in look("(" * 100000 + ")" * 100000)} == {"unchecked"}
    assert look("const f = (x) => x.exit;\nf(process);") == set(), "what a lint cannot see"


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """A daemon whose templates have no interpreter that works."""
    folder = tmp_path_factory.mktemp("f")
    glovebox = Glovebox(folder)
    glovebox.state = folder / "state"
    failing_templates.add_to(glovebox.state, STATE / "templates" / "minimal")
    policies = folder / "policies"
    policies.mkdir()
    (policies / "any.yaml").write_text("name: any\nextends: minimal\ntemplate: silent\n"
                                       "languages: [python, bash, node]\nprecheck: {unchecked: allow}\n")
    (policies / "minimal.yaml").write_text((TOP / "policies" / "minimal.yaml").read_text())
    started = session_rig.Daemon(glovebox, folder, policies=str(policies))
    yield started
    started.stop()


# Whatever a policy says of what cannot be looked at: a checker that was asked and gave no answer has not said yes.
@pytest.mark.parametrize("way", failing_templates.WAYS)
def test_a_checker_that_fails_denies(failing, way):
    def run(language):
        return failing.call("POST", "/v1/runs", {"code": "1", "language": language, "policy": "any", "template": way})
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(run, failing_templates.LANGUAGES))
    for language, (status, result) in zip(failing_templates.LANGUAGES, answers):
        assert status == 200 and result["status"] == "denied" and result["fault"] == "policy", (language, result)
        assert result["checks"]["decision"] == "deny" and "the checker" in result["checks"]["failure"], (language, result["checks"])
        assert result["usage"]["wall_ms"] == 0 and result["exit_code"] is None and result["stdout"] == "", language
        assert result["denials"][0]["layer"] == "precheck" and "nothing has run" in result["denials"][0]["message"]
        assert result["receipt"]
        if way == "hangs":
            assert result["checks"]["failure"].endswith(("status limit: cpu", "status limit: wall")), result["checks"]

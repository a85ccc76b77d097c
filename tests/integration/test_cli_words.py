"""Texts of the command line about itself: help, completion, version, and messages for typing errors."""

import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import socket
import struct
import subprocess
import termios
import threading

import pytest
import yaml

from conftest import BUILD, TOP
from serving import Serving, let_others_in, state_of_its_own, with_policies

VERBS = ["run", "exec", "check", "session", "policy", "prompt", "manifest", "template", "libs", "receipt", "log", "replay",
         "doctor", "setup", "serve", "key", "config", "approvals", "approve", "deny", "top", "completion", "version", "help"]


def test_help_lists_every_verb_and_begins_with_examples(glovebox):
    done = glovebox("--help")
    text = done.stdout.decode()
    assert done.returncode == 0 and done.stderr == b""
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", text, re.MULTILINE), verb
    assert text.index("glovebox run script.py") < text.index("Usage:")
    groups = re.findall(r"^\n([A-Z][\w ]+)\n((?:  \w+ +\S.*\n)+)", text, re.MULTILINE)
    assert [group for group, _ in groups] == ["Run code", "Sessions", "Policies and templates", "Run a service", "Decisions and receipts", "Help"]
    assert "  setup " in groups[3][1] and "  status " in groups[3][1]


def test_another_program_at_the_socket_is_reported(glovebox):
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(glovebox.folder / "s"))
        other.listen()

        def answer():
            peer = other.accept()[0]
            peer.recv(65536)
            peer.sendall(b"220 mail\r\n\r\n")
            peer.close()

        thread = threading.Thread(target=answer)
        thread.start()
        done = glovebox("status", "--daemon", glovebox.folder / "s")
        thread.join()
    assert done.returncode == 125 and b"another program answers there, and not gloveboxd; give the daemon's socket" in done.stderr, done


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "help"])
def test_every_verb_explains_itself_examples_first(glovebox, verb):
    for arguments in ([verb, "--help"], [verb, "-h"], ["help", verb]):
        done = glovebox(*arguments)
        assert done.returncode == 0 and done.stderr == b""
        assert f"glovebox {verb}" in done.stdout.decode().splitlines()[0] + done.stdout.decode()[:400]


def test_every_verb_is_in_the_manual(glovebox):
    page = (TOP / "docs/man/glovebox.1.scd").read_text()
    verbs = re.findall(r"^  (\w+) +\w", glovebox("help").stdout.decode().partition("Usage:")[2], re.MULTILINE)
    assert set(VERBS) <= set(verbs), verbs
    assert [verb for verb in verbs if not re.search(rf"^\*.*\*?{verb}\*", page, re.MULTILINE)] == []


def test_every_verb_has_a_page_of_the_manual(glovebox):
    """Made from what the verb says of itself, so that it says the same."""
    verbs = re.findall(r"^  (\w+) +\w", glovebox("help").stdout.decode().partition("Usage:")[2], re.MULTILINE)
    pages = {verb: BUILD / f"glovebox-{verb}.1" for verb in verbs}
    assert [verb for verb, page in pages.items() if not page.exists()] == []
    text = pages["key"].read_text()
    assert ".SH SYNOPSIS\nglovebox key create|list|rotate|revoke" in text and "\\fB\\-\\-grace\\fR \\fI1h\\fR\nrotate: how long" in text
    synopsis, _, rest = pages["session"].read_text().partition(".SH EXAMPLES")
    assert "glovebox session new|create" in synopsis and "glovebox session kill|rm" in synopsis and ".SH OPTIONS" in rest
    if not shutil.which("man"):
        pytest.skip("man is not installed")
    for page in pages.values():
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page], capture_output=True, check=True,
                              env=os.environ | {"LC_ALL": "C.UTF-8"})
        assert done.stderr == b"", page


@pytest.mark.usefixtures("python_template")
def test_moments_are_iso_8601_for_people(glovebox):
    state_of_its_own(glovebox)
    iso = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z"
    with Serving(glovebox, tcp=False) as service:
        receipt = service.run("1").json["receipt"]
        service.call("POST", "/v1/sessions", {"policy": "minimal"})
        assert glovebox("key", "create", "--expires", "1h").returncode == 0
        listed = glovebox("session", "list", "--daemon", service.socket).stdout.decode().splitlines()[1]
    shown = glovebox("receipt", "show", receipt).stdout.decode()
    assert all(re.search(rf"^(times)? +{name} {iso}$", shown, re.MULTILINE) for name in ("submitted", "started", "ended", "written")), shown
    assert re.match(rf"A run for the owner began at {iso} and ended after \d+ ms: ok\.\n\nreceipt ", shown), shown
    assert re.search(r"^granted .*, cpus unlimited, .*, memory 256 MiB, .*, wall 10 s$", shown, re.MULTILINE) and re.search(r"^used .*memory \d+ [KM]iB, ", shown, re.MULTILINE), shown
    assert re.search(r"^outcome +exit_code 0, fault -, signal -, status ok$", shown, re.MULTILINE) and re.search(r"^hits +-$", shown, re.MULTILINE)
    tail = glovebox("log", "tail").stdout.decode().splitlines()
    assert tail and all(re.match(rf" +\d+  {iso}  rcp_", line) for line in tail), tail
    heads, first = glovebox("key", "list").stdout.decode().splitlines()[:2]
    assert re.search(iso, listed) and re.search(iso, first) and heads.startswith("ID  ") and heads.isupper(), heads


def test_a_state_folder_without_a_log_is_reported(glovebox, tmp_path):
    for words in (("log", "tail"), ("receipt", "list"), ("log", "verify")):
        done = glovebox(*words, "--state", tmp_path)
        assert done.returncode != 0 and done.stderr.decode() == (
            f"glovebox: there is no log at '{tmp_path}/daemon/log': nothing has run with this state folder; name another with --state FOLDER, "
            "or the log with --log FOLDER\n"), done


@pytest.mark.usefixtures("python_template")
def test_receipts_are_listed_without_the_events_between_them(glovebox):
    state_of_its_own(glovebox)
    with Serving(glovebox, tcp=False) as service:
        for _ in range(3):
            assert glovebox("key", "create").returncode == 0
            service.run("1")
    every = glovebox("log", "tail", "-n", "1000").stdout.splitlines()
    receipts = [line for line in every if line.split()[3] == b"run"]
    assert len(receipts) == 3 and len(every) >= 6
    assert glovebox("receipt", "list").stdout.splitlines() == receipts == glovebox("receipt").stdout.splitlines()
    assert glovebox("receipt", "list", "-n", "2").stdout.splitlines() == receipts[-2:]
    listed = glovebox("receipt", "list", "--json", "-n", "1").stdout
    assert [row["predicate"]["id"].encode() for row in json.loads(listed)] == [receipts[-1].split()[2]]


@pytest.mark.usefixtures("python_template")
def test_folders_of_policies_may_be_named_from_here(glovebox, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/p.yaml").write_text("name: p\nextends: minimal\n")
    policies = os.path.relpath(TOP / "policies", tmp_path)
    done = glovebox("policy", "show", "p", env={"GLOVEBOX_POLICIES": f"mine::{policies}"}, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = glovebox("run", "--private", "-p", "none", "-c", "1", env={"GLOVEBOX_POLICIES": f"mine:{policies}"}, cwd=tmp_path)
    assert b"minimal" in done.stderr and b" p" in done.stderr, done.stderr
    told = f"looked in {tmp_path}/mine (of GLOVEBOX_POLICIES), {tmp_path}/{policies} (of GLOVEBOX_POLICIES), ".encode()
    assert told in done.stderr and done.stderr.endswith(b"/policies (the state's)\n"), done.stderr
    assert told in glovebox("policy", "show", "none", env={"GLOVEBOX_POLICIES": f"mine:{policies}"}, cwd=tmp_path).stderr
    assert b" (came with glovebox), " in glovebox("policy", "show", "none").stderr
    assert b"names no folder" in glovebox("policy", "list", env={"GLOVEBOX_POLICIES": "::"}).stderr


def test_every_limit_has_a_flag(glovebox):
    text = glovebox("run", "--help").stdout.decode()
    for name in ["wall", "cpu", "cpus", "memory", "processes", "disk", "inodes", "disk-read-rate",
                 "disk-write-rate", "open-files", "output", "artifacts", "artifact-files"]:
        assert f"--{name} " in text


@pytest.mark.parametrize("arguments, says", [
    (["rnu"], "there is no verb 'rnu'; did you mean 'run'?"),
    (["init"], "there is no verb 'init'; see glovebox help"),
    (["zzzzzz"], "there is no verb 'zzzzzz'; see glovebox help"),
    (["run", "--memroy", "1"], "there is no option --memroy; did you mean --memory?"),
    (["run", "--polcy=data"], "there is no option --polcy; did you mean --policy?"),
    (["run", "-Z"], "there is no option -Z; see glovebox run --help"),
    (["run", "--policy"], "--policy needs a value: --policy NAME"),
    (["run", "--json=yes"], "--json takes no value; write it alone"),
    (["run"], "there is nothing to run; give a file, - for stdin, or -c CODE"),
    (["exec"], "there is no command; write glovebox exec -- COMMAND"),
    (["exec", "-c", "x"], "exec takes a command, not code; use glovebox run"),
    (["run", "--private", "--daemon", "x", "-c", "1"], "--private and --daemon exclude each other; give one"),
    (["run", "--wall", "30", "-c", "1"],
     "--wall: limit wall cannot be '30'; write a whole number with its unit, ms, s, m or h, such as 30s"),
    (["run", "--memory", "64", "-c", "1"],
     "--memory 64 is 64 bytes, and 8 MiB to 64 GiB can be given; write --memory 64MiB if that is meant"),
    (["run", "--memory", "5", "-c", "1"], "--memory 5 is out of bounds; give 8 MiB to 64 GiB"),
    (["template", "show", "pyton"], "there is no template 'pyton'; see glovebox template list"),
    (["policy", "validate", "nowhere.yaml"], "cannot read policy file 'nowhere.yaml': No such file or directory; check the name"),
    (["config", "validate", "nowhere"], "cannot read 'nowhere': No such file or directory; check the name"),
    (["config", "frob"], "there is no 'config frob'; it is show, validate or keys"),
    (["session", "attach"], "session attach needs the id of a session; glovebox session list shows them"),
    (["session", "cp", "a"], "session cp needs two places; see glovebox session --help"),
    (["receipt", "show", "rcp_1"],
     "'rcp_1' is no id of a receipt, and there is no such file; see glovebox receipt list"),
    (["key", "list", "--name", "ci"], "key list takes no --name; leave it out, or see glovebox key --help"),
    (["key", "revoke", "0123", "--grace", "1h"], "key revoke takes no --grace; leave it out, or see glovebox key --help"),
    (["net", "tail", "--unused"], "net tail takes no --unused; leave it out, or see glovebox net --help"),
    (["net", "--once", "--run", "run_1"], "net rules takes no --run; leave it out, or see glovebox net --help"),
    (["template", "import", "nowhere.tar"], "cannot read 'nowhere.tar': No such file or directory; check the name"),
    (["run", "--file", "", "-c", "1"], "--file is empty; give FILE[:PATH][:ro]"),
    (["completion", "tcsh"], "completion knows bash, zsh and fish; name one of them"),
    (["serve", "x"], "serve takes no 'x'; see glovebox serve --help"),
    (["serve", "--listen", "0.0.0.0:80", "--socket", "s"],
     "--listen: 0.0.0.0:80 is open to other machines, and keys would cross the network unencrypted; listen on "
     "127.0.0.1 behind a proxy that speaks TLS"),
    (["serve", "--listen", "7070", "--socket", "s"],
     "--listen: listen takes ADDRESS:PORT such as 127.0.0.1:7070, not '7070'"),
])
def test_slips_are_answered_in_one_line(glovebox, arguments, says):
    done = glovebox(*arguments)
    assert done.stderr.decode() == f"glovebox: {says}\n"
    assert done.returncode in (125, 126) and done.stdout == b""


def test_the_doctor_says_what_is_missing_after_a_first_build(glovebox, tmp_path):
    done = glovebox("doctor", env={"GLOVEBOX_STATE": str(tmp_path / "empty")})
    text = done.stdout.decode()
    assert done.returncode == 2 and "fix:   glovebox template build python" in text
    only = text.count("\nmissing ") == 1
    assert ("what is missing is a template for them" in text) == only and ("cannot build" in text) == (not only), text


def test_a_missing_part_of_the_interpreter_is_named(glovebox, tmp_path):
    for name in ("seccomp", "policies"):
        (tmp_path / name).symlink_to(BUILD / name)
    (tmp_path / "python").mkdir()
    for words in (["doctor"], ["serve", "--socket", tmp_path / "s"]):
        done = glovebox(*words, env={"GLOVEBOX_DATA": str(tmp_path)})
        says = f"there is no '{tmp_path}/python/_glovebox.abi3.so'; GLOVEBOX_DATA points to the wrong folder\n"
        assert done.returncode in (2, 125) and says in (done.stdout + done.stderr).decode(), done


def test_version(glovebox):
    plain = glovebox("version").stdout.decode()
    assert re.fullmatch(r"glovebox \d+\.\d+\.\d+\n", plain)
    assert json.loads(glovebox("version", "--json").stdout)["version"] == plain.split()[1]
    assert glovebox("--version").stdout.decode() == plain


def bash_offers(glovebox, *words, env=None):
    script = glovebox("completion", "bash").stdout.decode()
    script += f"\ncompopt() {{ :; }}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}\n"
    script += "_glovebox; printf '%s\\n' \"${COMPREPLY[@]}\"\n"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, cwd=glovebox.folder, env=env)
    assert done.stderr == b""
    return [line for line in done.stdout.decode().splitlines() if line]


def test_bash_completion_offers_what_fits(glovebox, tmp_path):
    (tmp_path / "script.py").touch()
    assert bash_offers(glovebox, "glovebox", "te") == ["template"]
    assert bash_offers(glovebox, "glovebox", "run", "--mem") == ["--memory"]
    assert bash_offers(glovebox, "glovebox", "run", "scr") == ["script.py"]
    assert bash_offers(glovebox, "glovebox", "run", "-l", "py") == ["python"]
    assert bash_offers(glovebox, "glovebox", "template", "bu") == ["build"]
    assert bash_offers(glovebox, "glovebox", "session", "at") == ["attach"]
    (tmp_path / "attic of files").touch()
    assert bash_offers(glovebox, "glovebox", "run", "att") == ["attic of files"]
    assert bash_offers(glovebox, "glovebox", "run", "--file", "att") == ["attic of files"]
    assert bash_offers(glovebox, "glovebox", "session", "at") == ["attach"]
    assert bash_offers(glovebox, "glovebox", "session", "--la") == ["--label"]
    assert bash_offers(glovebox, "glovebox", "log", "ver") == ["verify"]
    assert bash_offers(glovebox, "glovebox", "exec", "--cod") == []
    assert bash_offers(glovebox, "glovebox", "key", "create", "--scope", "s") == ["sessions"]
    assert bash_offers(glovebox, "glovebox", "manifest", "--format", "open") == ["openai", "openapi"]
    assert bash_offers(glovebox, "glovebox", "run", "--language", "=", "py") == ["python"]  # `--language=py`, as bash has it
    assert set(bash_offers(glovebox, "glovebox", "key", "create", "--scope", "=")) >= {"run", "sessions"}


WORDS_OF_VERBS = [("libs re", ["request", "review"]), ("mcp in", ["install"]), ("approvals rev", ["revoke"]), ("limits rep", ["report"])]


def test_words_that_may_follow_a_verb_are_offered(glovebox):
    """`libs request`, where a template's name may stand as well, and `mcp install`, where nothing has to stand."""
    for words, offered in WORDS_OF_VERBS:
        assert bash_offers(glovebox, "glovebox", *words.split()) == offered, words
    assert bash_offers(glovebox, "glovebox", "mcp", "install", "in") == []
    zsh = glovebox("completion", "zsh").stdout.decode()
    for words in ("request review approve deny", "install", "list show revoke", "report"):
        assert f"compadd {words} ;" in zsh or f"'1:what:({words} )'" in zsh, words
    assert "'--policy=[" in zsh or "--policy=}'[" in zsh  # zsh takes --policy=NAME, too


@pytest.mark.skipif(not shutil.which("fish"), reason="no fish is installed")
def test_fish_offers_files_only_where_they_can_stand(glovebox):
    (glovebox.folder / "g.fish").write_bytes(glovebox("completion", "fish").stdout)
    (glovebox.folder / "script.py").touch()
    asked = [*(words for words, _ in WORDS_OF_VERBS), "run --language ", "run --wall ", "run --file "]
    lines = "; echo ==; ".join(f"complete -C 'glovebox {words}'" for words in asked)
    told = subprocess.run(["fish", "--no-config", "-c", f"source g.fish; {lines}"], capture_output=True, text=True, check=True,
                          env=glovebox.environment({"HOME": str(glovebox.folder)}), cwd=glovebox.folder, timeout=120).stdout
    offered = [[line.split("\t")[0] for line in part.splitlines()] for part in told.split("==\n")]
    assert [sorted(names) for names in offered[:4]] == [names for _, names in WORDS_OF_VERBS]
    assert "python" in offered[4] and "script.py" not in offered[4] and offered[5] == [] and "script.py" in offered[6]


@pytest.mark.usefixtures("python_template")
def test_ids_and_names_are_completed(glovebox):
    """Of what there is now, by what the listings say: bash and fish are asked, zsh reads the same lines."""
    state_of_its_own(glovebox)
    with Serving(glovebox, tcp=False, env=with_policies(glovebox, {"asked": "approval: {when: [always]}"})) as service:
        env = glovebox.environment({"GLOVEBOX_SOCKET": service.socket, "PATH": f"{BUILD}:{os.environ['PATH']}"})
        session = service.call("POST", "/v1/sessions", {"policy": "minimal"}).json["id"]
        receipt = service.run("1").json["receipt"]
        approval = service.run("1", policy="asked").json["approval"]
        key = json.loads(glovebox("key", "create", "--json").stdout)["id"]
        asked = [("session show ses", session), ("session new --template mini", "minimal"), ("repl ses", session),
                 ("receipt show rcp", receipt), ("replay rcp", receipt), ("approve apr", approval), ("deny apr", approval),
                 ("approvals apr", approval), ("key revoke " + key[:6], key), ("template show mini", "minimal"),
                 ("libs mini", "minimal"), ("policy show exten", "extended"), ("run --policy exten", "extended"),
                 ("help appro", "approvals")]
        for words, offered in asked:
            assert offered in bash_offers(glovebox, "glovebox", *words.split(), env=env), words
        assert session not in bash_offers(glovebox, "glovebox", "session", "s", env=env)
        zsh = glovebox("completion", "zsh").stdout.decode()
        assert all(zsh.count(f"glovebox {listing} 2>/dev/null") for listing in ("session list", "approvals", "key list", "log tail"))
        if shutil.which("fish"):
            (glovebox.folder / "g.fish").write_bytes(glovebox("completion", "fish").stdout)
            (glovebox.folder / "script.py").touch()
            lines = "; ".join(f"complete -C 'glovebox {words}'" for words, _ in [*asked, ("session s", "")])
            told = subprocess.run(["fish", "--no-config", "-c", f"source g.fish; {lines}"], capture_output=True, text=True, check=True,
                                  env=env | {"HOME": str(glovebox.folder)}, cwd=glovebox.folder, timeout=120).stdout
            assert [offered for _, offered in asked if offered not in told] == [] and "script.py" not in told, told


def test_validate_refuses_what_the_daemon_would(glovebox, tmp_path):
    (tmp_path / "p.yaml").write_text("name: q\nextends: minimal\n")
    (tmp_path / "q.yaml").write_text("name: q\nextends: minimal\n")
    done = glovebox("policy", "validate", str(tmp_path / "p.yaml"))
    assert done.returncode == 125 and b"the daemon refuses it; write name: p\n" in done.stderr
    let_others_in(tmp_path)
    for mode, says in ((0o644, ""), (0o600, f"glovebox: gloveboxd, another user, cannot read '{tmp_path}/q.yaml': chmod o+r\n" * (os.geteuid() == 0))):
        (tmp_path / "q.yaml").chmod(mode)
        done = glovebox("policy", "validate", str(tmp_path / "q.yaml"))
        assert (done.returncode, done.stderr.decode()) == (0, says), done
    for name in ("q", "q.yml", "q.yaml.new", ".yaml"):  # where a daemon looks for policies it passes over these
        (tmp_path / name).write_text("name: q\nextends: minimal\n")
        done = glovebox("policy", "validate", str(tmp_path / name))
        assert done.returncode == 125 and b"the daemon reads files that end in .yaml, and no other" in done.stderr, name
    assert b"minimal is valid" in glovebox("policy", "validate", "minimal").stdout
    done = glovebox("policy", "validate", "nowhere")
    assert done.returncode != 0 and b"no policy 'nowhere'" in done.stderr, done
    assert json.loads(glovebox("policy", "validate", "--json", "nowhere").stdout)[0]["valid"] is False


@pytest.mark.parametrize(("words", "means"), [
    (["policy"], ["policy", "list"]), (["policy", "ls"], ["policy", "list"]), (["template"], ["template", "list"]),
    (["template", "ls"], ["template", "list"]), (["template", "rm", "none"], ["template", "remove", "none"]),
    (["config"], ["config", "show"]), (["key", "rm"], ["key", "revoke"]), (["key", "new", "x", "y"], ["key", "create", "x", "y"]),
    (["key"], ["key", "list"]), (["key", "ls"], ["key", "list"]), (["session", "rm"], ["session", "kill"]),
    (["session", "create", "x"], ["session", "new", "x"]), (["session", "remove"], ["session", "rm"]),
    (["receipt"], ["receipt", "list"]), (["receipt", "ls"], ["receipt", "list"]), (["log"], ["log", "tail"]), (["net"], ["net", "rules"]),
])
def test_nouns_alone_list_and_verbs_have_their_usual_names(glovebox, words, means):
    state_of_its_own(glovebox)  # whose log does not grow between both
    one, other = glovebox(*words), glovebox(*means)
    assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr)
    assert b"--help" not in one.stderr or len(words) >= 3 or words[0] == "session"


@pytest.mark.usefixtures("python_template")
def test_a_noun_with_options_alone_lists_too(glovebox):
    """And a verb may stand behind its options. What is listed has one shape."""
    state_of_its_own(glovebox)
    with Serving(glovebox, tcp=False, env=with_policies(glovebox, {"out": "network: {allow: [files.example.org]}"})) as service:
        for _ in range(3):
            service.run("1")
        session = service.call("POST", "/v1/sessions", {"policy": "minimal"}).json["id"]
        key = json.loads(glovebox("key", "create", "--json").stdout)["id"]
        env = {"GLOVEBOX_SOCKET": service.socket}
        for words, means in ((("receipt", "-n", "2"), ("receipt", "list", "-n", "2")), (("net", "--unused"), ("net", "rules", "--unused")),
                             (("session", "--all"), ("session", "list", "--all")), (("key", "--json"), ("key", "list", "--json")),
                             (("log", "-n", "1"), ("log", "tail", "-n", "1")), (("config", "--origin"), ("config", "show", "--origin")),
                             (("policy", "--json"), ("policy", "list", "--json")), (("limits", "--policy", "minimal"),
                                                                                    ("limits", "report", "--policy", "minimal")),
                             (("net", "--json", "rules"), ("net", "rules", "--json")), 
                             (("session", "--all", "ls"), ("session", "list", "--all"))):
            one, other = glovebox(*words, env=env), glovebox(*means, env=env)
            said = [re.sub(rb"since \S+Z|started_at.{30}", b"", done.stdout) for done in (one, other)]
            assert said[0] == said[1] and (one.returncode, other.returncode) == (0, 0) and said[0], (words, one)
        lists = {words: json.loads(glovebox(*words.split(), "--json", env=env).stdout)
                 for words in ("session list", "session list --all", "receipt list", "key list", "policy list", "policy sets", "policy sets pip",
                               "template list", "approvals", "libs minimal", "libs review", f"session ps {session}",
                               f"session files {session}", f"session checkpoints {session}")}
        assert [words for words, value in lists.items() if not isinstance(value, list)] == []
        assert [row["id"] for row in lists["session list"]] == [session] and [row["id"] for row in lists["key list"]] == [key]
        assert len(lists["receipt list"]) >= 3 and [row["name"] for row in lists["policy sets pip"]] == ["pip"]
        assert [(row["id"], row["state"]) for row in json.loads(glovebox("session", "kill", session, "--json", env=env).stdout)] == [
            (session, "ended")]
        assert json.loads(glovebox("session", "list", "--json", env=env).stdout) == []


def test_a_file_where_a_state_folder_should_be_is_named_as_such(glovebox, tmp_path):
    (tmp_path / "file").write_text("x")
    for words in (["list"], ["create"]):
        done = glovebox("key", *words, "--state", tmp_path / "file")
        assert done.returncode == 125 and b"/daemon': a part of that path is a file\n" in done.stderr, done


def test_notes_fit_into_eighty_columns(glovebox):
    verbs = re.findall(r"^COMMAND\((\w+)", (TOP / "src/cli/commands.def").read_text(), re.MULTILINE)
    said = {verb: glovebox(verb, "--help").stdout.decode().partition("-h, --help")[2] for verb in verbs}
    assert [(verb, line) for verb, text in said.items() for line in text.splitlines() if len(line) > 80] == []
    assert len(said["serve"].splitlines()) > 4


def test_a_look_at_keys_and_requests_makes_no_folder(glovebox, tmp_path):
    typo = tmp_path / "typo"
    for words in (["list"], ["revoke", "0123"], ["rotate", "0123"]):
        done = glovebox("key", *words, "--state", str(typo))
        assert done.returncode == 125 and done.stderr.decode() == (
            f"glovebox: there are no keys in '{typo}'; name another state with --state FOLDER, or make a key there with glovebox key create\n")
        assert glovebox("key", *words, env={"GLOVEBOX_STATE": str(typo)}).stderr == done.stderr
        assert not typo.exists()
    done = glovebox("libs", "review", env={"GLOVEBOX_STATE": str(typo)})
    assert done.returncode == 125 and done.stderr.decode() == (
        f"glovebox: there is no '{typo}'; name another state with --state FOLDER\n")
    assert not typo.exists()


def test_the_texts_of_options_stand_below_each_other(glovebox):
    """Also where a value has a character of several bytes."""
    rows = glovebox("key", "--help").stdout.decode().split("\n\n")[2].splitlines()
    assert len(rows) > 10 and all(row[32] == " " and row[33] != " " for row in rows), rows
    assert glovebox("help", "--help").stdout == glovebox("help").stdout == glovebox("help", "help").stdout


@pytest.mark.parametrize("noun", ["session", "policy", "template", "key", "config", "net", "limits", "receipt", "log"])
def test_a_verb_that_a_noun_has_not_is_answered_with_those_that_it_has(glovebox, noun):
    """One form for all of them; what is offered is what the help of the noun names."""
    [said] = glovebox(noun, "frobnicate").stderr.decode().splitlines()
    verbs = re.fullmatch(rf"glovebox: there is no '{noun} frobnicate'; it is (.*)", said)[1].replace(" or ", ", ").split(", ")
    text = glovebox(noun, "--help").stdout.decode()
    assert all(re.search(rf"\b{verb}\b", text) for verb in verbs), verbs
    near = verbs[0] + "z"
    assert glovebox(noun, near).stderr.decode() == f"glovebox: there is no '{noun} {near}'; did you mean glovebox {noun} {verbs[0]}\n"


def test_aliases_are_completed(glovebox):
    text = glovebox("completion", "bash").stdout.decode()
    for noun, aliases in (("session", "ls rm remove create"), ("key", "ls rm remove new"), ("template", "ls rm"), ("policy", "ls")):
        words = re.search(rf"^    {noun}\)\n.*?words='(.*?)'", text, re.DOTALL | re.MULTILINE)[1]
        assert words.endswith(f" {aliases}"), (noun, words)


@pytest.mark.parametrize("language", ["py", "Python", "python3", "python"])
def test_languages_have_their_usual_names(glovebox, language):
    done = glovebox("run", "--policy", "minimal", "--memory", "128mb", "-l", language, "-c", "print(6 * 7)")
    assert done.stdout == b"42\n", done.stderr


@pytest.mark.parametrize(("name", "language", "policy"), [
    ("a.cpp", "cpp", "polyglot"), ("a.cc", "cpp", "polyglot"), ("a.pl", "perl", "polyglot"), ("a.js", "node", "node"), ("a.mjs", "node", "node"), ("a.r", "r", "r")])
def test_files_run_by_their_suffix(glovebox, tmp_path, name, language, policy):
    """The policy that has the language is named, and the command that builds its template where there is none."""
    (tmp_path / name).write_text("1")
    done = glovebox("run", "--private", "--policy", "minimal", str(tmp_path / name))
    assert f"has no language '{language}'; it has: python, bash; policy {policy} has it".encode() in done.stderr, done
    is_built = (glovebox.state / "templates" / policy / "manifest.json").exists()
    assert is_built or done.stderr.endswith(f"; policy {policy} has it, once there is: glovebox template build {policy}\n".encode())


@pytest.mark.parametrize(("name", "language"), [("a.rb", "ruby"), ("a.go", "go"), ("a.ts", "typescript"), ("a.ipynb", "notebook")])
def test_a_file_of_another_language_is_not_run_as_python(glovebox, tmp_path, name, language):
    (tmp_path / name).write_text("1")
    done = glovebox("run", "--private", "--policy", "minimal", str(tmp_path / name))
    assert done.returncode == 125 and f"has no language '{language}'; it has: python, bash".encode() in done.stderr, done


def test_a_policy_without_python_has_its_first_language(glovebox, tmp_path):
    done = glovebox("run", "--private", "--policy", "shell", "-c", "echo $((6 * 7)) | tr 4 5")
    assert done.stdout == b"52\n", done
    done = glovebox("run", "--private", "--policy", "shell", "-", stdin=b"echo $((6 * 7))")
    assert done.stdout == b"42\n", done


def test_a_language_of_a_policy_has_its_usual_names(glovebox, tmp_path):
    """`javascript` in a policy is what templates call `node`; what its template has not is said, and the line to write."""
    (tmp_path / "policies").mkdir()
    for name, languages in (("js", "javascript, sh"), ("rb", "ruby"), ("two", "cpp, pl")):
        (tmp_path / f"policies/{name}.yaml").write_text(f"name: {name}\ntemplate: minimal\nlanguages: [{languages}]\n")
    (tmp_path / "policies/twice.yaml").write_text("name: twice\ntemplate: minimal\nlanguages: [js, node]\n")
    let_others_in(tmp_path / "policies")
    env = {"GLOVEBOX_POLICIES": str(tmp_path / "policies")}
    shown = [json.loads(glovebox("policy", "show", "--json", name, env=env).stdout)["languages"] for name in ("js", "two")]
    assert shown == [["node", "bash"], ["cpp", "perl"]]
    assert b"'node' is listed twice" in glovebox("policy", "validate", "twice", env=env).stderr
    done = glovebox("run", "--private", "--policy", "rb", "-c", "puts 1", env=env)
    assert done.returncode == 126 and done.stderr == (
        b"glovebox: policy rb has language 'ruby', which template minimal has not; write in rb.yaml 'languages: [python]', "
        b"or 'template:' with one that has it\n"), done
    done = glovebox("run", "--private", "--policy", "js", "-l", "python", "-c", "1", env=env)
    assert done.returncode == 126 and b"does not allow language 'python', only node and others; ask for another policy, or add" in done.stderr


def test_a_language_without_policy_is_reported(glovebox):
    done = glovebox("run", "--private", "-l", "cobol", "-c", "1")
    assert done.stderr.endswith(b" has no language 'cobol'; it has: python, bash\n"), done


def test_the_shipped_policies_are_good(glovebox):
    """Each with the languages of its template's recipe."""
    for path in sorted((TOP / "policies").glob("*.yaml")):
        policy = yaml.safe_load(path.read_text())
        shown = json.loads(glovebox("policy", "show", "--json", policy["name"]).stdout)
        recipe = yaml.safe_load((TOP / "templates" / f"{shown['template']}.yaml").read_text())
        assert set(shown["languages"]) <= set(recipe["languages"]), path


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_scripts_are_well_formed(glovebox, tmp_path, shell):
    script = glovebox("completion", shell).stdout
    assert b"--memory" in script or b"-l memory" in script
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_bytes(script)
    subprocess.run([shell, "-n", tmp_path / "script"], check=True)


def test_help_is_folded_at_the_width_of_a_terminal(glovebox):
    """Sentences of options go on below their beginning; a pipe gets them whole."""
    def shown(verb, columns):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with subprocess.Popen([str(BUILD / "glovebox"), verb, "--help"], stdout=slave, stdin=subprocess.DEVNULL) as program:
            os.close(slave)
            text = b""
            with contextlib.suppress(OSError):
                while block := os.read(master, 65536):
                    text += block
        os.close(master)
        assert program.returncode == 0
        return text.decode().replace("\r", "")
    for verb in ("run", "session", "repl"):
        whole, folded = glovebox(verb, "--help").stdout.decode(), shown(verb, 80)
        assert max(map(len, folded.splitlines())) <= 80 < max(map(len, whole.splitlines())), verb
        assert re.sub(r"\n {33}(?=\S)", " ", folded) == re.sub(r"\n {33}(?=\S)", " ", whole), verb
        assert shown(verb, 200) == whole and shown(verb, 40) == whole, verb

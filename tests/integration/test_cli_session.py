"""`glovebox session`: cells, programs, terminals and files of a session, from the command line."""

import datetime
import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from conftest import BUILD
from serving import begin_on_terminal
from session_rig import Daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    from conftest import Glovebox
    folder = tmp_path_factory.mktemp("cli")
    daemon = Daemon(Glovebox(folder), folder)
    yield daemon
    daemon.stop()


@pytest.fixture
def cli(daemon, tmp_path):
    def cli(*words, **how):
        return subprocess.run([str(BUILD / "glovebox"), "session", words[0], "--daemon", daemon.path, *words[1:]],
                              capture_output=True, timeout=60, cwd=tmp_path, **({"stdin": subprocess.DEVNULL} | how))
    return cli


@pytest.fixture
def session(cli):
    for _ in range(4):
        made = cli("new", "--policy", "data", "--label", "user=a", "--env", "COLOUR=blue", "--idle", "5m")
        if made.returncode == 0:
            break
    assert made.returncode == 0, made.stderr
    name = made.stdout.decode().strip()
    assert re.fullmatch(r"ses_[0-9a-f]{32}", name)
    yield name
    cli("kill", name)


class Shell:
    """`glovebox session shell` on a terminal of the test's own."""

    def __init__(self, daemon, *words, verb=("session", "shell"), env=()):
        self.pid, self.fd = begin_on_terminal([BUILD / "glovebox", *verb, "--daemon", daemon.path, *words],
                                              {**os.environ, "TERM": "xterm-256color", **dict(env)})
        self.seen = b""

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def type(self, text):
        os.write(self.fd, text.encode())

    def until(self, wanted, seconds=30):
        end = time.monotonic() + seconds
        while wanted not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    assert wanted in self.seen, self.seen
        found, self.seen = self.seen.split(wanted, 1)
        return found + wanted

    def end(self):
        rest = b""
        while True:
            try:
                block = os.read(self.fd, 65536)
            except OSError:
                block = b""
            if not block:
                break
            rest += block
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), self.seen + rest


def test_cells_keep_their_names_and_show_values(cli, session):
    assert cli("run", session, "-c", "import os\nx = 6 * 7\nprint('hello')\nos.environ['COLOUR']").stdout == b"hello\n'blue'\n"
    assert cli("run", session[:12], "-c", "x").stdout == b"42\n"
    failed = cli("run", session, "-c", "1 / 0")
    assert failed.stderr.endswith(b"\n    1 / 0\n    ~~^~~\nZeroDivisionError: division by zero\n"), failed.stderr
    assert failed.returncode == 1 and b"ZeroDivisionError" in failed.stderr and failed.stdout == b""
    assert cli("run", session, "-", input=b"x + 1", stdin=None).stdout == b"43\n"
    for option in ("--context", "--language", "-l"):
        assert cli("run", option, "bash", session, "-c", "echo $COLOUR").stdout == b"blue\n", option
    result = json.loads(cli("run", "--json", session, "-c", "x").stdout)
    assert result["cell"]["session"] == session and result["results"][0]["data"]["text/plain"] == "42"
    limited = cli("run", session, "--limit", "wall=300ms", "-c", "import time; time.sleep(9)")
    assert limited.returncode == 124 and b"wall" in limited.stderr


def test_sessions_are_listed_shown_and_killed(cli, session):
    assert session.encode() in cli("list").stdout and b'"user":"a"' in cli("list").stdout.replace(b" ", b"")
    assert json.loads(cli("show", "--json", session).stdout)["metadata"] == {"user": "a"}
    shown = dict(line.split(maxsplit=1) for line in cli("show", session).stdout.decode().splitlines())
    assert (shown["id"], shown["state"], shown["metadata"]) == (session, "running", "user a") and "ended" not in shown
    assert shown["contexts"] == "-" and shown["usage"].endswith(", cells 0") and ", walls (userns, " in shown["isolation"]
    for label, is_there in (("user=a", True), ("user=b", False), ("team=a", False)):
        assert (session.encode() in cli("list", "--label", label).stdout) == is_there, label
    assert session.encode() not in cli("list", "--label", "user=a", "--label", "team=a").stdout
    listed = cli("list", "--json").stdout
    assert b"\\/" not in listed and session in [row["id"] for row in json.loads(listed)]
    assert cli("kill", session).returncode == 0
    assert session.encode() not in cli("list").stdout and session.encode() in cli("list", "--all").stdout
    assert session.encode() in cli("list", "--state", "ended").stdout and session.encode() in cli("list", "--state", "all").stdout
    assert b"state 'x' does not exist; it is one of ended, all" in cli("list", "--state", "x").stderr
    gone = cli("run", session, "-c", "1")
    assert gone.returncode != 0 and b"has ended" in gone.stderr
    assert b"begins with" in cli("show", "ses_zzz").stderr


def test_typing_errors_get_a_suggestion(cli, session):
    assert b"there is no option --wall here; write --limit wall=VALUE" in cli("run", session, "--wall", "1s", "-c", "1").stderr
    done = cli("exec", session, "--", "nosuch")
    assert done.returncode == 127 and b"execute 'nosuch' (this template has none; its operator can add it): No such" in done.stderr, done
    assert b"execute './nosuch': No such" in cli("exec", session, "--", "./nosuch").stderr
    said = cli("run", session, "--context", "perl", "-c", "1").stderr
    assert b"the session has no context 'perl': template " in said and b"has no language 'perl'; it has: python, bash\n" in said


def test_programs_pass_everything_through(cli, session):
    done = cli("exec", session, "--", "bash", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
    for words, status, why in ((["nosuch"], 127, b"No such file"), (["/etc/passwd"], 126, b"Permission denied")):
        done = cli("exec", session, "--", *words)
        assert done.returncode == status and why in done.stderr, done
    block = os.urandom(300_000)
    assert cli("exec", session, "cat", input=block, stdin=None).stdout == block
    assert cli("exec", session, "--", "sh", "-c", "kill -9 $$").returncode == 137
    missing = cli("exec", session, "--", "nothing-of-this-name")
    assert missing.returncode != 0 and b"nothing-of-this-name" in missing.stderr


def test_a_program_is_interrupted_and_the_session_goes_on(daemon, cli, session):
    process = subprocess.Popen([BUILD / "glovebox", "session", "exec", "--daemon", daemon.path, session, "--", "bash", "-c",
                                "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.05; done"],
                               stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == b"caught\n" and process.wait(30) == 3
    assert cli("run", session, "-c", "1").stdout == b"1\n"


def test_what_runs_is_listed_and_found_again(daemon, cli, session):
    assert cli("ps", session).stdout.split() == [b"ID", b"PID", b"STATE", b"TERMINAL", b"COMMAND"]
    assert b"no program runs there" in cli("attach", session).stderr
    daemon.call("POST", f"/v1/sessions/{session}/processes",
                {"shell": "echo begun; until [ -e go ]; do sleep 0.05; done; echo done; exit 4", "tag": "job"})
    listed = cli("ps", session).stdout.decode().splitlines()
    assert len(listed) == 2 and "until [ -e go ]" in listed[1], listed
    for words in ([], ["job"], [listed[1].split()[1]]):
        follower = subprocess.Popen([BUILD / "glovebox", "session", "attach", "--daemon", daemon.path, session, *words],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        assert follower.stdout.readline() == b"begun\n"
        if words and words != ["job"]:
            assert cli("pause", session).returncode == 0
            assert follower.stderr.readline() == b"glovebox: the session is paused: its programs stand still\n"
            assert cli("resume", session).returncode == 0
            assert follower.stderr.readline() == b"glovebox: the session goes on\n"
            cli("run", session, "-c", "open('go', 'w')")
            assert follower.stdout.read() == b"done\n" and follower.wait(30) == 4
        else:
            follower.kill()
            follower.wait()
        follower.stdout.close()
        follower.stderr.close()
    assert b"no process that runs" in cli("attach", session, "job").stderr


def test_other_names_of_the_verbs(cli):
    made = cli("create", "--policy", "data")
    name = made.stdout.strip()
    listed = cli("ls").stdout.splitlines()
    assert listed[0].split() == [b"ID", b"STATE", b"POLICY", b"CREATED", b"ENDS", b"IN", b"PARENT", b"METADATA"]
    assert re.search(name + rb" +running +data +\S+Z +10 min +-", b"\n".join(listed[1:])), listed
    assert cli("rm", name.decode()).returncode == 0 and name not in cli("ls").stdout


def test_an_ended_interpreter_is_reported(cli, session):
    ended = cli("run", session, "-c", "import os; os._exit(3)")
    assert ended.returncode != 0 and ended.stderr.startswith(b"ContextEnded: "), ended


@pytest.mark.parametrize("words", [("--idle", "0s"), ("--ttl", "0s"), ("--label", "=x")])
def test_values_that_mean_the_default_are_refused(cli, words):
    refused = cli("new", *words)
    assert refused.returncode != 0 and b" takes " in refused.stderr and refused.stdout == b"", refused


def test_a_branch_that_never_becomes_ready_is_reported(cli, session):
    """It is answered before its memory is there; at the command line both are one."""
    from test_branches import HOSTILE
    assert cli("run", session, "-c", HOSTILE["no image at all"].replace("BODY", "False")).returncode == 0
    made = cli("branch", session)
    assert made.returncode != 0 and made.stdout == b"", made
    assert made.stderr.startswith(b"glovebox: ") and b"image ends early" in made.stderr, made


def test_branches_and_marks(cli, session):
    cli("run", session, "-c", "x = 7")
    checkpointed = cli("checkpoint", session, "before")
    assert checkpointed.returncode == 0 and checkpointed.stdout.startswith(b"ckp_"), checkpointed.stderr
    cli("run", session, "-c", "x = 8")
    now, then = (cli("branch", *more, session).stdout.decode().strip() for more in ((), ("--checkpoint", "before")))
    try:
        assert cli("run", now, "-c", "x").stdout == b"8\n" and cli("run", then, "-c", "x").stdout == b"7\n"
    finally:
        cli("kill", now, then)
    own = cli("branch", session, "--label", "try=2", "--idle", "50s", "--ttl", "2m", "--json")
    try:
        said = json.loads(own.stdout)
        assert said["metadata"] == {"try": "2"} and said["idle_seconds"] == 50 and said["parent"] == session, own
        lives = [datetime.datetime.fromisoformat(said[key]) for key in ("created_at", "expires_at")]
        assert 110 < (lives[1] - lives[0]).total_seconds() < 121
        row = [line.split() for line in cli("list").stdout.decode().splitlines() if said["id"] in line][0]
        assert row[6] == session[:12] and row[5] == "s" and 40 < int(row[4]) <= 50, row
        assert session in [row["parent"] for row in json.loads(cli("list", "--json").stdout)]
    finally:
        cli("kill", said["id"])
    assert b"before" in cli("checkpoints", session).stdout and checkpointed.stdout.strip() in cli("checkpoints", "--json", session).stdout
    assert cli("rollback", session, "before").returncode == 0 and cli("run", session, "-c", "x").stdout == b"7\n"
    assert b"no checkpoint 'after'; it has before" in cli("rollback", session, "after").stderr
    assert b"choose another" in cli("checkpoint", session, "before").stderr
    assert cli("checkpoint-rm", session, "before").returncode == 0 and b"before" not in cli("checkpoints", session).stdout
    assert b"no checkpoint 'before'; it has none" in cli("rollback", session, "before").stderr
    for words in (("rollback", session, "before"), ("rollback", session, "a/b"), ("rollback", session),
                  ("branch", "--checkpoint", "before", session), ("branch", "--context", "bash", session)):
        refused = cli(*words)
        assert refused.returncode != 0 and refused.stderr.startswith(b"glovebox: ") and refused.stderr.count(b"\n") < 3, words


@pytest.mark.parametrize("words, says", [
    (("branch", "--env", "a=b", "ID"), "session branch takes no --env"),
    (("branch", "ID", "--policy", "data"), "session branch takes no --policy"),
    (("branch", "ID", "before"), "session branch takes no 'before'"),
    (("rollback", "ID", "before", "after"), "session rollback takes no 'after'"),
    (("rollback", "ID"), "the id of a session, and a checkpoint"),
    (("checkpoint", "ID", "--checkpoint", "before"), "session checkpoint takes no --checkpoint"),
    (("new", "python"), "session new takes no 'python'"),
    (("list", "--idle", "5m"), "session list takes no --idle"),
    (("run", "ID", "--env", "A=b", "-c", "1"), "session run takes no --env"),
    (("run", "ID", "-c", "1", "file.py"), "session run takes no 'file.py'"),
    (("exec", "ID", "--limit", "wall=1s", "--", "true"), "session exec takes no --limit"),
    (("resume", "ID", "--files-only"), "session resume takes no --files-only"),
])
def test_what_would_be_passed_over_is_refused(tmp_path, words, says):
    """Before a daemon is asked."""
    done = subprocess.run([str(BUILD / "glovebox"), "session", *words, "--daemon", str(tmp_path / "none")] if words[0] != "exec" else
                          [str(BUILD / "glovebox"), "session", *words], capture_output=True, timeout=60, check=False)
    assert done.returncode == 125 and says in done.stderr.decode() and b"--help" in done.stderr, done


def test_a_session_is_paused_and_resumed(cli, session):
    cli("run", session, "-c", "x = 7")
    assert cli("pause", session).returncode == 0 and b"paused" in cli("list").stdout
    assert f"is paused; resume it: glovebox session resume {session}, or POST" in cli("run", session, "-c", "x").stderr.decode()
    assert cli("resume", session).returncode == 0 and cli("run", session, "-c", "x").stdout == b"7\n"
    assert cli("pause", "--files-only", session).returncode == 0 and cli("resume", session).returncode == 0
    assert b"NameError" in cli("run", session, "-c", "x").stderr


def test_every_verb_has_an_answer_for_programs(cli, session):
    """What changes a session prints nothing for people, and the daemon's answer with --json: one document in one line."""
    def told(*words):
        assert not cli(*words).stdout
        lines = cli(*words[:1], "--json", *words[1:]).stdout.decode().splitlines()
        assert len(lines) == 1, lines
        return json.loads(lines[0])
    assert (told("pause", session)["state"], told("resume", session)["state"]) == ("paused", "running")
    assert cli("checkpoint", session, "before").returncode == 0 and told("rollback", session, "before")["id"] == session
    assert json.loads(cli("checkpoint", "rm", "--json", session, "before").stdout)["name"] == "before"
    assert [len(cli(verb, "--json", *of).stdout.splitlines()) for verb, of in (("new", ()), ("branch", (session,)))] == [1, 1]


def test_checkpoints_are_listed_and_removed_as_other_things_are(cli, session):
    assert cli("checkpoint", "create", session, "one").returncode == cli("checkpoint", session, "two").returncode == 0
    rows = cli("checkpoint", "list", session).stdout
    assert rows == cli("checkpoints", session).stdout and len(rows.splitlines()) == 3
    heads, first = rows.decode().splitlines()[:2]
    assert heads.split() == ["ID", "CREATED", "SIZE", "NAME"] and [first[heads.index(name):][:1] for name in ("ID", "NAME")] == ["c", "t"], rows
    assert cli("checkpoint", "rm", session, "one").returncode == cli("checkpoint", "remove", session, "two").returncode == 0
    assert len(cli("checkpoint", "ls", session).stdout.splitlines()) == 1
    assert b"needs the id of a session, and a checkpoint" in cli("checkpoint", "rm", session).stderr


def test_kill_continues_after_an_unknown_id(cli):
    made = cli("new", "--policy", "data").stdout.decode().strip()
    done = cli("kill", "ffff", made)
    assert done.returncode == 125 and b"begins with 'ffff'" in done.stderr
    assert made.encode() not in cli("list").stdout


def test_a_limit_names_the_option_that_a_session_has(cli, session):
    done = cli("run", "--limit", "wall=300ms", session, "-c", "while True: pass")
    assert done.returncode == 124 and b"ask for more with --limit wall=VALUE, up to" in done.stderr, done
    done = cli("run", session, "-c", "a = bytearray(4 << 30)")
    assert b"ask for more with session new --limit memory=VALUE, up to" in done.stderr, done


def test_a_name_makes_no_line_of_its_own(cli, session):
    made = cli("run", session, "-c", "open('/workspace/a\\nfile            0  forged', 'w'); open('/workspace/b\\x1b[2J\\x7f', 'w')")
    assert made.returncode == 0, made.stderr
    lines = cli("files", session).stdout.decode().splitlines()
    assert len([line for line in lines if "forged" in line]) == 1
    cli("run", session, "-c", "open('/workspace/c\u202egpj.\u200b\U000e0041exe', 'w')")
    assert any("c<U+202E>gpj.<U+200B><U+E0041>exe" in line for line in cli("files", session).stdout.decode().splitlines())
    assert any("a\\x0afile" in line for line in lines) and any("b\\x1b[2J\\x7f" in line for line in lines), lines


def test_files_go_in_and_out(cli, session, tmp_path):
    block = os.urandom(3_000_000)
    (tmp_path / "a file").write_bytes(block)
    assert cli("cp", "./a file", f"{session}:in/ä b").returncode == 0
    assert cli("cp", f"{session[:14]}:in/ä b", "-").stdout == block
    assert "in/ä b" in cli("files", session, "in").stdout.decode() or "ä b" in cli("files", session, "in").stdout.decode()
    tar = cli("cp", "--tar", f"{session}:in", "-").stdout
    assert cli("cp", "--tar", "-", f"{session}:copy", input=tar, stdin=None).returncode == 0
    assert cli("cp", f"{session}:copy/ä b", "out").returncode == 0 and (tmp_path / "out").read_bytes() == block
    assert cli("cp", f"{session}:none", "-").returncode != 0
    refused = cli("cp", "out", f"{session}:/etc/x")
    assert refused.returncode != 0 and b"'/etc/x': Read-only file system; /workspace and /tmp can be written\n" in refused.stderr, refused
    assert cli("cp", f"{session}:none", "out").returncode == 125 and (tmp_path / "out").read_bytes() == block  # it stays
    assert cli("cp", f"{session}:none", "new").returncode == 125 and not (tmp_path / "new").exists()
    cli("exec", session, "--", "sh", "-c", "echo short > s")
    assert cli("cp", f"{session}:s", "out").returncode == 0 and (tmp_path / "out").read_bytes() == b"short\n"
    assert b"cannot read 'nowhere'" in cli("cp", "nowhere", f"{session}:x").stderr
    assert b"one of both" in cli("cp", "a", "b").stderr


@pytest.fixture(name="project")
def project_(tmp_path):
    """A folder with what folders have."""
    folder = tmp_path / "project"
    (folder / "sub/empty").mkdir(parents=True)
    (folder / "a.txt").write_text("a\n")
    (folder / "sub" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (folder / "sub" / "run.sh").chmod(0o755)
    (folder / ("n" * 150)).write_text("long")
    (folder / "link").symlink_to("a.txt")
    (tmp_path / "one.csv").write_text("1\n")
    return folder


def found(folder):
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


def test_folders_are_copied_as_cp_does(cli, session, project, tmp_path):
    names = found(project)
    assert cli("cp", "-r", "project", f"{session}:there").returncode == 0
    listed = cli("exec", session, "--", "find", "there", "-mindepth", "1", "-printf", "%P\\n").stdout.decode().split()
    assert sorted(listed) == names
    assert cli("exec", session, "--", "there/sub/run.sh").stdout == b"ran\n"  # executable
    assert cli("cp", "-r", "project", f"{session}:there").returncode == 0  # into what is there already
    assert cli("cp", f"{session}:there/project/a.txt", "-").stdout == b"a\n"
    out = cli("cp", "-r", f"{session}:there/project", "out")
    assert out.returncode == 0 and b"left out: 'link'" in out.stderr
    assert found(tmp_path / "out") == [name for name in names if name != "link"]
    assert os.access(tmp_path / "out/sub/run.sh", os.X_OK) and not os.access(tmp_path / "out/a.txt", os.X_OK)
    assert cli("cp", "-r", f"{session}:there/.", "out").returncode == 0 and (tmp_path / "out/project/a.txt").exists()
    assert cli("cp", "-r", f"{session}:", "out").returncode == 0 and (tmp_path / "out/there/a.txt").exists()
    assert cli("cp", "-r", "project/.", f"{session}:").returncode == 0 and cli("cp", f"{session}:a.txt", "-").stdout == b"a\n"


def test_a_target_that_is_a_folder_takes_the_name_of_the_source(cli, session, project, tmp_path):
    for target, place in (("", "one.csv"), ("/tmp", "/tmp/one.csv"), ("/tmp/", "/tmp/one.csv"), (".", "one.csv"), ("./x", "x"), (".//y", "y")):
        assert cli("cp", "one.csv", f"{session}:{target}").returncode == 0, target
        assert cli("cp", f"{session}:{place}", "-").stdout == b"1\n", target
    assert cli("cp", "one.csv", "project/a.txt", f"{session}:/tmp").returncode == 0
    assert cli("cp", f"{session}:/tmp/a.txt", f"{session}:/tmp/one.csv", "project/sub").returncode == 0
    assert (project / "sub/a.txt").read_text() + (project / "sub/one.csv").read_text() == "a\n1\n"
    assert cli("cp", f"{session}:/etc/passwd", ".").returncode == 0 and (tmp_path / "passwd").exists()


@pytest.mark.parametrize(("words", "says"), [
    (("project", "S:new"), "'project' is a folder; copy it with -r"),
    (("one.csv", "project", "S:/tmp"), "'project' is a folder"),
    (("one.csv", "nowhere", "S:/tmp"), "cannot read 'nowhere'"),
    (("one.csv", "project/a.txt", "S:new"), "several sources go into a folder, and 'new' is none"),
    (("one.csv", "S:new/"), "'new/' is no folder"),
    (("-r", "project", "S:/etc/passwd"), "is a file"),
    (("S:/tmp", "new"), "is a folder; copy it with -r"),
    (("S:/etc/passwd", "S:none", "project"), "there is no 'S:none'"),
    (("S:/etc/passwd", "S:/etc/group", "new"), "several sources go into a folder"),
    (("S:/etc/passwd", "other:/etc/group", "project"), "all sources must be in one session"),
    (("S:/etc/passwd", "new/"), "'new/' is no folder"),
    (("-r", "S:/tmp", "one.csv"), "is a file"),
    (("--tar", "a", "b", "S:new"), "--tar copies one tar"),
])
def test_what_cannot_be_copied_is_refused_before_anything_is_sent(cli, session, project, tmp_path, words, says):
    before = found(tmp_path), cli("files", session).stdout, cli("files", session, "/tmp").stdout
    done = cli("cp", *[word.replace("S:", f"{session}:") for word in words])
    assert done.returncode == 125 and says.replace("S:", f"{session}:") in done.stderr.decode(), done
    assert before == (found(tmp_path), cli("files", session).stdout, cli("files", session, "/tmp").stdout)


def test_a_shell_is_a_terminal_with_the_size_of_ours(daemon, session):
    shell = Shell(daemon, session)
    shell.until(b"$ ")
    shell.size(41, 99)
    shell.type("stty size; tty; echo $TERM\r")
    for _ in range(50):
        if b"41 99" in shell.until(b"xterm-256color"):
            break
        time.sleep(0.2)
        shell.type("stty size; echo $TERM\r")
    else:
        raise AssertionError("the size did not arrive")
    shell.type("sleep 60\r")
    time.sleep(0.3)
    shell.type("\x03")  # a key as any other
    shell.until(b"$ ")
    shell.type("exit 5\r")
    status, _ = shell.end()
    assert status == 5


def test_no_shell_sees_that_its_jobs_were_paused(daemon, session):
    shell = Shell(daemon, session)
    shell.until(b"$ ")
    shell.type("sleep 100 & cat | cat\r")
    shell.until(b"[1] ")
    for _ in range(20):
        for what in ("pause", "resume"):
            assert daemon.call("POST", f"/v1/sessions/{session}/{what}")[0] == 200
    shell.type("still\r")
    assert b"Stopped" not in shell.until(b"still\r\nstill\r\n")
    shell.type("\x04")
    assert b"Stopped" not in shell.until(b"$ ")
    shell.type("exit\r")
    assert shell.end()[0] == 0


def test_a_shell_is_left_and_found_again(daemon, session):
    shell = Shell(daemon, session)
    shell.until(b"$ ")
    shell.type("kept=still-here\r")
    shell.until(b"$ ")
    shell.type("\r")
    shell.until(b"$ ")
    shell.type("~.")
    status, said = shell.end()
    assert status == 0 and b"session attach " + session.encode() in said, said
    process = re.search(rb"session attach \S+ (\S+)", said).group(1).decode()
    again = Shell(daemon, session, process, verb=("session", "attach"))
    again.until(b"still-here")
    again.type("\x15echo $kept\r")
    again.until(b"\rstill-here")
    place = f"/v1/sessions/{session}"
    assert daemon.call("POST", f"{place}/pause")[0] == 200
    again.until(b"\r\n[the session is paused: its programs stand still]\r\n")
    late = Shell(daemon, session, process, verb=("session", "attach"))
    late.until(b"[the session is paused: its programs stand still]")  # who comes later learns it, too
    assert daemon.call("POST", f"{place}/resume")[0] == 200
    for each in (late, again):
        each.until(b"\r\n[the session goes on]\r\n")
    late.type("\r~.")
    assert late.end()[0] == 0
    again.type("exit\r")
    assert again.end()[0] == 0


@pytest.fixture
def repl(daemon, tmp_path):
    """A prompt on a terminal of the test's own; its history and its pictures lie in tmp_path."""
    def repl(*words, **env):
        made = Shell(daemon, *words, verb=("repl",), env={"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")} | env)
        made.banner = made.until(b"In [1]: ").decode()
        return made
    return repl


def test_repl_is_a_prompt_like_a_notebooks(repl, cli, tmp_path):
    ours = repl("--policy", "data", "--images", str(tmp_path / "figures"))
    began = re.search(r"python in a sandbox, policy data\. Session (ses_\w+), which ends with this prompt\.\r\n.*Ctrl-D leaves", ours.banner)
    assert began and began[1].encode() in cli("list").stdout, ours.banner
    ours.type("x = 6 * 7\r")
    ours.until(b"In [2]: ")
    ours.type("def f(a):\r    return a + '''\r")
    ours.until(b"...: ")
    ours.type("'''\r\rx\r")
    assert b"42" in ours.until(b"In [4]: ")
    ours.type("[1,\r2]\r")
    assert b"[1, 2]" in ours.until(b"In [5]: ")
    ours.type("1/0\r")
    assert b"ZeroDivisionError" in ours.until(b"In [6]: ")
    ours.type("import matplotlib.pyplot as plt; plt.plot([1]);\r")
    said = ours.until(b"In [7]: ", 60)
    assert (tmp_path / "figures" / "figure-1.png").read_bytes().startswith(b"\x89PNG") and b"figure-1.png" in said
    ours.type("print('in', flush=True); import time; time.sleep(60)\r")
    ours.until(b"\nin\r\n")
    ours.type("\x03")
    assert b"KeyboardInterrupt" in ours.until(b"In [8]: ")
    ours.type("thrown away\x03")
    ours.until(b"In [8]: ")
    session = cli("list").stdout.splitlines()[1].split()[0]
    ours.type("\x04")
    assert ours.end()[0] == 0
    assert session not in cli("list").stdout


@pytest.mark.parametrize("how", ["hangup", signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("code", ["", "'half an entr", "print('in', flush=True); import time; time.sleep(60)\r"])
def test_repl_leaves_no_session_behind(repl, daemon, how, code):
    before = {row["id"] for row in daemon.call("GET", "/v1/sessions")[1]["sessions"]}
    ours = repl("--policy", "data")
    (made,) = {row["id"] for row in daemon.call("GET", "/v1/sessions")[1]["sessions"]} - before
    ours.type(code)
    if code:
        ours.until(b"\nin\r\n" if code[-1] == "\r" else b"entr")
    if how == "hangup":
        os.close(ours.fd)
        status = os.waitstatus_to_exitcode(os.waitpid(ours.pid, 0)[1])
        assert status in (0, 128 + signal.SIGHUP)  # the end of the typing may be seen before the signal
    else:
        os.kill(ours.pid, how)
        assert ours.end()[0] == 128 + how
    assert made not in {row["id"] for row in daemon.call("GET", "/v1/sessions")[1]["sessions"]}


@pytest.mark.parametrize("word, status", [("exit()", 0), ("quit", 0), ("  quit() ", 0), ("exit(3);", 3), ("exits = 1", None)])
def test_repl_ends_on_exit(repl, word, status, session):
    ours = repl(session)
    ours.type(word + "\r")
    if status is None:  # it is the interpreter's
        ours.until(b"In [2]: ")
        ours.type("\x04")
    for _ in range(200):
        if os.waitid(os.P_PID, ours.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        time.sleep(0.05)
    else:
        os.kill(ours.pid, signal.SIGKILL)
    assert ours.end()[0] == (status or 0)


@pytest.mark.parametrize("words, says", [
    (("-l", "perl"), "no language and no context 'perl'; policy minimal has python, bash"),
    (("-l", "r", "--policy", "data"), "no language and no context 'r'; policy data has python, bash"),
])
def test_repl_says_at_once_which_languages_there_are(daemon, cli, words, says):
    before = cli("list").stdout
    done = subprocess.run([BUILD / "glovebox", "repl", "--daemon", daemon.path, *(() if "--policy" in words else ("--policy", "minimal")),
                           *words], stdin=subprocess.PIPE, capture_output=True, timeout=60, check=False)
    assert done.returncode == 125 and says in done.stderr.decode() and done.stdout == b"", done
    assert cli("list").stdout == before, "nothing is left behind"


def test_an_open_prompt_keeps_the_session_from_being_idle(daemon, repl):
    session = daemon.session(idle_seconds=1)
    ours = repl(session.answer["id"])
    ours.type("x = 1\r")
    ours.until(b"In [2]: ")
    ours.type("x + ")
    time.sleep(2.5)
    ours.type("1\r")
    assert b"\n2" in ours.until(b"In [3]: ")
    ours.type("\x04")
    assert ours.end()[0] == 0
    for _ in range(100):
        if session.get()["state"] == "ended":
            break
        time.sleep(0.05)
    assert session.get()["ended"]["why"] == "idle"


def test_repl_says_that_its_session_stays(tmp_path):
    from conftest import Glovebox
    ending = Daemon(Glovebox(tmp_path), tmp_path)
    ours = Shell(ending, "--policy", "data", verb=("repl",), env={"HOME": str(tmp_path)})
    ours.until(b"In [1]: ")
    ending.stop()
    ours.type("\x04")
    assert b"the session could not be ended: " in ours.end()[1]


def test_repl_corrects_lines_and_keeps_a_history(repl, session):
    ours = repl(session)
    ours.type("'ä' + x'\x1b[D\x1b[D\x1b[C\x1b[D'\x1b[H\x06\x1b[3~ö\x05 + 'end'\r")
    assert "'öxend'".encode() in ours.until(b"In [2]: ")
    ours.type("y = 'drawn', 'again'\r")
    ours.until(b"In [3]: ")
    ours.type("wrong words\x17\x17\x15z = 5\x1b[A\x1b[B + 1 and more\x02\x02\x02\x02\x02\x02\x02\x02\x02\x0b\r")
    ours.until(b"In [4]: ")
    ours.type("z\r")
    assert b"\n6" in ours.until(b"In [5]: ")
    ours.type("\x04")
    assert ours.end()[0] == 0
    again = repl(session)  # the session stayed, and so did the lines
    again.type("\x1b[A\x1b[A\x01w = \r")
    again.until(b"In [2]: ")
    again.type("w, z, y\r")
    assert b"(6, 6, ('drawn', 'again'))" in again.until(b"In [3]: ")
    again.type("\x04")
    again.end()


def test_repl_completes_typed_words(repl, session):
    ours = repl(session)
    ours.type("quite_long = 6; quite_low = 7\r")
    ours.until(b"In [2]: ")
    ours.type("qui\tng * qui\tw\r")  # both begin with quite_lo
    assert b"\n42\r\n" in ours.until(b"In [3]: ")
    ours.type("[\t1, zz\b\b 2]\r")  # no word: an indent
    assert b"[1, 2]" in ours.until(b"In [4]: ")


def test_repl_goes_on_in_a_shell_and_finds_entries_whole(repl, session):
    ours = repl("-l", "sh", session)
    assert f"bash in a sandbox, policy data. Session {session}, which stays." in ours.banner, ours.banner
    ours.size(24, 100)
    ours.type("for x in 1 2; do\r")
    ours.until(b"...: ")
    ours.type("  echo a$x\rdone\r")
    assert b"a1\r\na2\r\n" in ours.until(b"In [2]: ")
    ours.type("cat <<END\rit's (\rEND\r")
    assert b"it's (\r\n" in ours.until(b"In [3]: ")
    ours.type("\x1b[A\x1b[A")
    ours.until("for x in 1 2; do\u21b5  echo a$x\u21b5done".encode())
    ours.type("\x01\x06\x06\x06\x06yy\x05 | tac\r")  # "for " + "yy" + "x in …"
    assert b"a2\r\na2\r\n" in ours.until(b"In [4]: "), "x has its last value"
    ours.type("if true\r")
    ours.until(b"...: ")
    ours.type("\r\r")
    assert b"syntax error" in ours.until(b"In [5]: "), "two empty lines end what is believed to go on"
    ours.type("\x04")
    ours.end()
    again = repl("-l", "bash", session)  # the file holds them whole, too
    again.type("\x1b[A\x1b[A\x1b[A\r")
    assert b"it's (\r\n" in again.until(b"In [2]: ")
    again.type("\x04")
    again.end()


def test_repl_lets_no_picture_through_that_is_none(repl, session, tmp_path):
    ours = repl("--images", str(tmp_path / "kept"), session)
    ours.type("class P:\r    def _repr_png_(self):\r        return b'\\x89PNG no'\r\r")
    ours.until(b"In [2]: ")
    ours.type("P()\r")
    ours.until(b"[image/png: it is none, and is left out]")
    ours.until(b"In [3]: ")
    ours.type("import struct\r")
    ours.until(b"In [4]: ")
    ours.type("P._repr_png_ = lambda self: b'\\x89PNG\\r\\n\\x1a\\n\\0\\0\\0\\rIHDR' + struct.pack('>II', 1 << 20, 1 << 20) + bytes(9)\r")
    ours.until(b"In [5]: ")
    ours.type("P()\r")
    ours.until(b"[image/png: it is none, and is left out]")
    ours.until(b"In [6]: ")
    ours.type("\x04")
    ours.end()
    assert not (tmp_path / "kept").exists()


def test_repl_draws_where_the_terminal_can(repl, session):
    for env, begins in (({"KITTY_WINDOW_ID": "1"}, b"\x1b_Ga=T,f=100,m=1;iVBOR"),
                        ({"TERM_PROGRAM": "iTerm.app"}, b"\x1b]1337;File=inline=1:iVBOR")):
        ours = repl(session, **env)
        ours.type("import matplotlib.pyplot as plt; plt.plot([1]);\r")
        ours.until(begins, 60)
        ours.until(b"In [2]: ")
        ours.type("\x04")
        ours.end()


def test_repl_reads_from_a_pipe(daemon, session):
    done = subprocess.run([BUILD / "glovebox", "repl", "--daemon", daemon.path, session], capture_output=True, timeout=60,
                          input=b"def f():\n    return 7\n\nf() * 6\n", check=True)
    assert done.stdout == b"42\n" and done.stderr == b""
    shell = subprocess.run([BUILD / "glovebox", "repl", "--daemon", daemon.path, "-l", "bash", session], capture_output=True,
                           timeout=60, input=b"x=4\necho $x\n", check=True)
    assert shell.stdout == b"4\n"
    failed = subprocess.run([BUILD / "glovebox", "repl", "--daemon", daemon.path, session], capture_output=True, timeout=60,
                            input=b"1 / 0\n", check=False)
    assert failed.returncode == 1 and b"ZeroDivisionError" in failed.stderr


def test_dangerous_escape_sequences_are_removed(daemon, session):
    shell = Shell(daemon, session)
    shell.until(b"$ ")
    evil = {"title": r"\e]0;owned\a", "clipboard": r"\e]52;c;b3duZWQ=\e\\", "dcs": r"\eP$q\"p\e\\", "status": r"\e[6n",
            "device": r"\e[c", "window": r"\e[21t", "eight": r"\xc2\x9d0;owned\x9c", "ask": r"\x05", "mode": r"\e[?1$p"}
    shell.type("printf '%b' '" + "".join(f"<{name}{text}>" for name, text in evil.items()) + r"\e[31mred\e[0m done\n'" + "\r")
    seen = shell.until(b"red\x1b[0m done")
    drawn = seen[seen.rindex(b"<title"):]
    assert b"\x1b[31mred" in drawn
    for what in (b"\x1b]", b"\x1bP", b"[6n", b"\x1b[c", b"[21t", b"\xc2\x9d", b"\x05", b"$p"):
        assert what not in drawn, (what, drawn)
    shell.type("exit\r")
    assert shell.end()[0] == 0


def test_without_a_daemon_it_says_what_to_do(tmp_path):
    done = subprocess.run([str(BUILD / "glovebox"), "session", "list", "--daemon", str(tmp_path / "none")], capture_output=True,
                          timeout=30)
    assert done.returncode != 0 and b"glovebox serve" in done.stderr
    wrong = subprocess.run([str(BUILD / "glovebox"), "session", "lst"], capture_output=True, timeout=30)
    assert b"did you mean glovebox session list" in wrong.stderr

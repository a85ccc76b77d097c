"""`glovebox run` and `glovebox exec` for real: a private daemon, a sandbox, and what comes back."""

import ctypes
import hashlib
import json
import os
import pathlib
import platform
import pty
import signal
import subprocess
import threading
import time

import pytest

pytestmark = pytest.mark.usefixtures("python_template")

RT_SIGACTION = {"x86_64": 13}.get(platform.machine(), 134)  # 134: as most others number it


def test_hello(glovebox):
    done = glovebox.run("-c", "print('hello sandbox')")
    assert (done.stdout, done.stderr, done.returncode) == (b"hello sandbox\n", b"", 0)


def test_bytes_pass_untouched(glovebox):
    code = "import sys; b=bytes(range(256))*300; sys.stdout.buffer.write(b); sys.stderr.buffer.write(b[::-1])"
    done = glovebox.run("-c", code)
    assert done.stdout == bytes(range(256)) * 300
    assert done.stderr == bytes(range(255, -1, -1)) * 300


@pytest.mark.parametrize("code, status", [
    ("raise SystemExit(0)", 0), ("raise SystemExit(7)", 7), ("raise SystemExit(255)", 255),
    ("1/0", 1), ("import os; os.kill(os.getpid(), 11)", 139), ("import os; os.abort()", 134),
    ("import os; os._exit(124)", 124),
])
def test_exit_status_passes_through(glovebox, code, status):
    assert glovebox.run("-c", code).returncode == status


def test_traceback_names_the_script(glovebox, tmp_path):
    (tmp_path / "script.py").write_text("def f():\n    1 / 0\nf()\n")
    done = glovebox.run("script.py")
    assert b'File "/workspace/script.py", line 2, in f' in done.stderr and done.returncode == 1


def test_arguments_of_the_script(glovebox, tmp_path):
    (tmp_path / "script.py").write_text("import sys; print(sys.argv[1:])")
    done = glovebox.run("script.py", "a", "--json", "-c", "", "ä b")
    assert done.stdout.decode() == "['a', '--json', '-c', '', 'ä b']\n"
    done = glovebox.run("-c", "import sys; print(sys.argv[1:])", "--", "-x", "y")
    assert done.stdout == b"['-x', 'y']\n"


def test_code_from_stdin(glovebox):
    assert glovebox.run("-", stdin=b"print(40 + 2)").stdout == b"42\n"


def test_stdin_is_passed_only_when_asked(glovebox):
    code = "import sys; print(repr(sys.stdin.buffer.read()))"
    assert glovebox.run("-c", code, stdin=b"secret").stdout == b"b''\n"
    assert glovebox.run("--stdin", "-c", code, stdin=b"a\x00\xff").stdout == b"b'a\\x00\\xff'\n"


def test_bash_and_exec(glovebox, tmp_path):
    (tmp_path / "script.sh").write_text("echo $1; exit 3")
    done = glovebox.run("script.sh", "one")
    assert (done.stdout, done.returncode) == (b"one\n", 3)
    done = glovebox("exec", "--private", "--", "sh", "-c", "pwd; echo $0 $1", "a", "b")
    assert done.stdout == b"/workspace\na b\n"
    done = glovebox("exec", "--private", "--", "no-such-program")
    assert done.returncode == 127 or done.returncode == 125
    assert b"no-such-program" in done.stderr


def test_files_go_in_and_come_out(glovebox, tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    (tmp_path / "script.py").write_text("""
import os, pathlib
text = open("data.csv").read() + open("/workspace/in/x.csv").read()
pathlib.Path("sum.txt").write_text(text)
os.makedirs("deep/er"); pathlib.Path("deep/er/blob.bin").write_bytes(bytes(range(256)) * 4000)
os.symlink("/etc/passwd", "link"); os.mkfifo("fifo")
""")
    done = glovebox.run("--file", "data.csv", "--file", "data.csv:/workspace/in/x.csv", "--out", "out",
                        "script.py")
    assert done.returncode == 0
    out = tmp_path / "out"
    names = sorted(str(path.relative_to(out)) for path in out.rglob("*") if not path.is_dir())
    assert names == ["deep/er/blob.bin", "sum.txt"], "inputs, links and pipes are no artifacts"
    assert (out / "sum.txt").read_text() == "a,b\n1,2\n" * 2
    assert (out / "deep/er/blob.bin").read_bytes() == bytes(range(256)) * 4000


@pytest.fixture(name="project")
def folder_with_a_program(tmp_path):
    """A main file, a package, data, and what must not go along."""
    folder = tmp_path / "project"
    for name, text in {"main.py": "import json, sys, util.text\nprint(util.text.up('ran'), sys.argv[1:], open('data/a.csv').read())\n",
                       "util/text.py": "def up(text):\n    return text.upper()\n", "data/a.csv": "1,2", "empty.txt": "",
                       ".env": "SECRET=1", ".git/config": "token", "util/__pycache__/text.pyc": "old", "node_modules/a/index.js": "1",
                       "venv/pyvenv.cfg": "home"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "link.txt").symlink_to("/etc/passwd")
    (folder / "linked").symlink_to("/etc")
    os.mkfifo(folder / "fifo")
    return folder


LISTING = "import os; print(sorted(os.path.relpath(os.path.join(at, name), '.') for at, _, names in os.walk('.') for name in names))"
IN_PROJECT = ["data/a.csv", "empty.txt", "main.py", "util/text.py"]


@pytest.mark.parametrize("words", [["project", "x"], ["project/", "x"], ["./project", "x"]])
def test_a_folder_is_run_by_its_main_file(glovebox, project, words):
    done = glovebox.run(*words)
    assert (done.returncode, done.stdout) == (0, b"RAN ['x'] 1,2\n"), done.stderr
    (project / "main.py").write_text(LISTING)
    assert json.loads(glovebox.run("project").stdout.replace(b"'", b'"')) == IN_PROJECT
    (project / "main.py").unlink()
    said = glovebox.run("project")
    assert said.returncode == 125 and b"is a folder without main.py" in said.stderr and said.stderr.count(b"\n") == 1
    (project / "main.sh").write_text("cat data/a.csv")
    assert glovebox.run("project").stdout == b"1,2"


@pytest.mark.parametrize("argument, place", [("project", "project/"), ("project/", "project/"), ("project:in/it", "in/it/"),
                                             ("project:/workspace", ""), ("project/.", ""), ("./project:ro", "project/")])
def test_a_folder_goes_in_as_a_whole(glovebox, project, argument, place):
    done = glovebox.run("--file", argument, "-c", LISTING)
    assert json.loads(done.stdout.replace(b"'", b'"')) == [place + name for name in IN_PROJECT], done
    tried = glovebox.run("--file", argument, "-c", f"open({place + 'empty.txt'!r}, 'w')")
    assert (tried.returncode == 0) == (not argument.endswith(":ro")), tried.stderr


def test_a_folder_of_too_many_files_is_refused(glovebox, project):
    for number in range(1025):
        (project / f"f{number}").touch()
    said = glovebox.run("project")
    assert said.returncode == 125 and b"more than 1024 files; give an archive" in said.stderr


def test_read_only_files_cannot_be_changed(glovebox, tmp_path):
    (tmp_path / "data.csv").write_text("precious")
    code = """
try: open("data.csv", "w")
except OSError as e: print(type(e).__name__)
print(open("data.csv").read())"""
    assert glovebox.run("--file", "data.csv:ro", "-c", code).stdout == b"PermissionError\nprecious\n"


def test_a_changed_input_is_an_artifact(glovebox, tmp_path):
    (tmp_path / "data.csv").write_text("old")
    done = glovebox.run("--file", "data.csv", "--out", "out", "-c", "open('data.csv','a').write(' new')")
    assert done.returncode == 0
    assert (tmp_path / "out" / "data.csv").read_text() == "old new"
    assert (tmp_path / "data.csv").read_text() == "old", "the host's own file is never touched"


def test_environment(glovebox):
    done = glovebox.run("--env", "K=V=W", "--env", "EMPTY=", "-c",
                        "import os; print(os.environ['K'], repr(os.environ['EMPTY']), 'TOKEN' in os.environ)",
                        env={"TOKEN": "x"})
    assert done.stdout == b"V=W '' False\n"


@pytest.mark.parametrize("language", ["python", "bash"])
def test_signal_settings_and_umask_of_the_caller_are_not_inherited(glovebox, language):
    """A script that starts a service in the background leaves SIGINT ignored, and exec(2) keeps that."""
    libc = ctypes.CDLL(None)
    ignored = (ctypes.c_ulong * 4)(1)  # SIG_IGN, as the kernel has it: glibc keeps 32 and 33 for itself

    def as_a_careless_script():
        for number in {*range(1, 65)} - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGSEGV}:
            libc.syscall(RT_SIGACTION, number, ignored, None, 8)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGCHLD})
        os.umask(0o077)
    code = {"python": "import os; print(open('/proc/self/status').read(), end=''); print('%04o' % os.umask(0))",
            "bash": "cat /proc/self/status; umask"}[language]
    with glovebox.start("run", "--private", "--language", language, "-c", code, stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, preexec_fn=as_a_careless_script) as started:
        *lines, mask = started.stdout.read().decode().splitlines()
    status = dict(line.split(":\t", 1) for line in lines)
    of_python = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1 if language == "python" else 0
    assert int(status["SigIgn"], 16) == of_python, "what is ignored is the program's own doing"
    assert int(status["SigBlk"], 16) == 0
    assert mask == "0022"


@pytest.mark.parametrize("flags, code, status, words", [
    (["--wall", "3s"], "print('before', flush=True)\nwhile True: pass", 124, ["3 s", "wall"]),
    (["--policy", "extended", "--template", "minimal", "--cpu", "1s", "--wall", "60s"], "print('before', flush=True)\nwhile True: pass", 124, ["1 s", "processor"]),
    (["--memory", "64MiB"], "print('before', flush=True)\nx = bytearray(200 << 20)", 137, ["64 MiB", "memory"]),
    (["--processes", "8"], "print('before', flush=True)\nimport os\nfor i in range(20): os.fork() or os._exit(__import__('time').sleep(3))",
     1, ["8", "processes"]),
    (["--disk", "1MiB"], "print('before', flush=True)\nopen('x','wb').write(bytes(2 << 20))", 1, ["1 MiB", "disk"]),
])
def test_limits_say_their_name(glovebox, flags, code, status, words):
    done = glovebox.run(*flags, "-c", code, timeout=120)
    assert done.returncode == status, done.stderr
    assert done.stdout.startswith(b"before\n"), "what was printed is kept"
    line = done.stderr.decode().splitlines()[-1]
    assert line.startswith("glovebox: ") and all(word in line for word in words), line
    assert "limits." not in line and ("ask for more with --" in line or "policy allows no more" in line), line


def test_output_over_its_limit_keeps_head_and_tail(glovebox):
    done = glovebox.run("--output", "1000", "-c", "for i in range(1000): print(f'{i:09}')")
    assert done.returncode == 0
    assert done.stdout.startswith(b"000000000\n") and done.stdout.endswith(b"000000999\n")
    assert len(done.stdout) < 1200
    assert b"output" in done.stderr


def test_denials_are_reported(glovebox):
    done = glovebox.run("-c", "import socket\ntry: socket.create_connection(('192.0.2.1', 80), 1)\n"
                              "except OSError as e: print(e)")
    assert done.returncode == 0 and b"unreachable" in done.stdout
    assert done.stderr.startswith(b"glovebox: refused: network ") and done.stderr.count(b"\n") == 1


def test_a_limit_without_control_group_is_reported(glovebox, tmp_path):
    """An ordinary user without control groups; how it is held all the same: test_usage_watch.py."""
    if os.geteuid() != 0:
        pytest.skip("becoming somebody else needs root")
    for folder in [tmp_path, *tmp_path.parents]:
        if not folder.stat().st_mode & 0o1:
            folder.chmod(folder.stat().st_mode | 0o11)
    done = subprocess.run(["setpriv", "--reuid", "4242", "--regid", "4242", "--clear-groups",
                           glovebox.program, "run", "--private", "--memory", "64MiB", "-c", "print(1)"],
                          capture_output=True, cwd="/", env=glovebox.environment({"HOME": "/nonexistent"}),
                          check=False)
    assert done.stdout == b"1\n", done.stderr
    assert done.returncode == 0 and (not done.stderr or done.stderr.startswith(b"glovebox: no control group counts"))
    plain = glovebox.result("--memory", "64MiB", "-c", "print(1)")
    assert "cgroup_memory" in plain["isolation"]["walls"] + plain["isolation"]["degraded"]


def test_a_disk_rate_is_a_wall_only_where_it_was_asked_for(glovebox):
    def told(result):
        return result["isolation"]["walls"] + result["isolation"]["degraded"]
    assert "cgroup_io" not in told(glovebox.result("-c", "1"))
    assert "cgroup_io" in told(glovebox.result("--disk-read-rate", "1GiB", "-c", "1"))


def test_json_has_every_field(glovebox):
    result = glovebox.result("-c", "open('made','w').write('x'); print('out'); 1/0")
    assert list(result) == ["id", "status", "fault", "exit_code", "signal", "limit", "limit_hits", "stdout",
                            "stderr", "truncated", "text", "results", "error", "artifacts", "denials", "network", "checks", "gate",
                            "usage", "limits", "policy", "template", "isolation", "approval", "receipt"]
    assert (result["status"], result["fault"], result["exit_code"]) == ("error", "code", 1)
    assert result["stdout"] == "out\n" and "ZeroDivisionError" in result["stderr"]
    assert result["artifacts"][0]["sha256"] == hashlib.sha256(b"x").hexdigest()


def test_a_terminal_cannot_be_driven(glovebox):
    master, slave = pty.openpty()
    process = subprocess.Popen([glovebox.program, "run", "--private", "-c",
                                r"print('\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J')"],
                               stdout=slave, stderr=slave, stdin=slave, env=glovebox.environment())
    os.close(slave)
    seen = b""
    try:
        while data := os.read(master, 4096):
            seen += data
    except OSError:
        pass
    assert process.wait() == 0
    assert seen == b"\x1b[31mred\x1b[0m ^[]0;title^G ^[[2J\r\n\x1b[0m"


def test_ctrl_c_ends_the_run_and_keeps_its_files(glovebox, tmp_path):
    code = "open('partial','w').write('kept'); print('ready', flush=True)\nwhile True: pass"
    process = glovebox.start("run", "--private", "--out", "out", "-c", code, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)  # of its ten seconds' wall limit it would say so
    assert process.returncode == 130 and stderr == b"glovebox: cancelled\n"
    assert (tmp_path / "out" / "partial").read_text() == "kept"


def test_a_reader_that_leaves_ends_the_run(glovebox):
    process = glovebox.start("run", "--private", "-c", "while True: print('y')", stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=20) == 141
    process.stderr.close()


def test_output_streams_while_the_run_goes_on(glovebox):
    process = glovebox.start("run", "--private", "-c",
                             "import time; print('first', flush=True); time.sleep(3); print('last')",
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"first\n"
    assert process.poll() is None
    assert process.communicate(timeout=20)[0] == b"last\n"


def children_of(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_cli_leaves_no_process(glovebox, number):
    process = glovebox.start("run", "--private", "-c", "print('up', flush=True)\nwhile True: pass",
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == b"up\n"
    pair = children_of(process.pid)
    assert len(pair) >= 2, "spawner, daemon, and one who woke the control groups"
    process.send_signal(number)
    process.wait(timeout=20)
    process.stdout.close()
    end = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{pid}") for pid in pair):
        assert time.monotonic() < end, "spawner and daemon end with the one who started them"
        time.sleep(0.05)


def test_calls_side_by_side(glovebox):
    done = {}

    def call(number):
        done[number] = glovebox.run("-c", f"print({number})")

    threads = [threading.Thread(target=call, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [done[number].stdout for number in range(6)] == [b"%d\n" % number for number in range(6)], \
        [call.stderr for call in done.values()]


def test_libs_lists_what_the_manifest_says(glovebox):
    name = "python" if (glovebox.state / "templates/python").exists() else "minimal"
    manifest = json.loads((glovebox.state / f"templates/{name}/manifest.json").read_text())
    listed = json.loads(glovebox("libs", name, "--json").stdout)
    rows = [(row["name"], row["version"], row["manager"]) for row in listed]
    assert rows == [(row["name"], row["version"], manager) for part, manager in (("python", "pip"), ("packages", "apt"))
                    for row in manifest[part]], "Python's own first: they are what is asked for"
    plain = glovebox("libs", name).stdout.decode().splitlines()
    assert all(line.endswith("  (Debian)") == (row[2] == "apt") for line, row in zip(plain, rows, strict=True))
    assert glovebox("libs", name, "BASH").stdout.startswith(b"bash "), "a word in whatever letters"
    assert glovebox("libs", name, "no-such-library").stdout == b""
    done = glovebox("libs", "nothing")
    assert done.returncode == 125 and b"there is no template 'nothing'" in done.stderr and b"build FILE.yaml" in done.stderr

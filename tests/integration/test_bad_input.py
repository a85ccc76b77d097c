"""Bad input: each is answered with one line that names the cause and the fix, a status that is not 0, and
nothing lost or left."""

import json
import os
import resource
import shutil
import subprocess

import pytest
from serving import let_others_in

MiB = 1 << 20


def one_line(done, *words, status=(125, 126)):
    text = done.stderr.decode()
    assert done.returncode in status, (done.returncode, text)
    assert text.startswith("glovebox: ") and text.count("\n") == 1, text
    assert ";" in text, f"no fix is named: {text}"
    for word in words:
        assert word in text, text
    assert done.stdout == b""


@pytest.mark.usefixtures("python_template")
class TestNeedsADaemon:
    def test_unknown_language(self, glovebox):
        one_line(glovebox.run("-l", "cobol", "-c", "x"), "cobol")

    def test_unknown_policy(self, glovebox):
        one_line(glovebox.run("--policy", "nothing", "-c", "1"), "nothing")

    @pytest.mark.parametrize("name", ["../data", "a/b", "", "-", "x" * 300, "A", "a\nb"])
    def test_policy_that_is_no_name(self, glovebox, name):
        one_line(glovebox.run("--policy", name, "-c", "1"))

    def test_template_missing(self, glovebox):
        one_line(glovebox.run("--template", "nothing", "-c", "1"), "nothing")

    def test_limit_over_the_maximum_of_the_policy(self, glovebox):
        one_line(glovebox.run("--policy", "minimal", "--memory", "32GiB", "-c", "1"), "memory", "32 GiB")

    def test_limit_over_the_maximum_as_json(self, glovebox):
        done = glovebox.run("--json", "--policy", "minimal", "--memory", "32GiB", "-c", "1")
        error = json.loads(done.stdout)["error"]
        assert done.returncode == 126 and error["code"] == "limit" and error["fault"] == "caller"

    def test_10_mib_of_code_runs_or_is_refused(self, glovebox, tmp_path):
        (tmp_path / "long.py").write_text("#" * (10 * MiB - 20) + "\nprint('ran')\n")
        done = glovebox.run("long.py")
        if done.returncode == 0:
            assert done.stdout == b"ran\n"
        else:
            one_line(done, "code")

    def test_more_than_10_mib_of_code(self, glovebox, tmp_path):
        (tmp_path / "long.py").write_text("#" * (11 * MiB))
        one_line(glovebox.run("long.py"), "code", "10")

    def test_files_over_the_disk_limit(self, glovebox, tmp_path):
        (tmp_path / "big").write_bytes(bytes(4 * MiB))
        done = glovebox.run("--disk", "1MiB", "--file", "big", "-c", "print(1)")
        assert done.returncode != 0 and done.stderr.count(b"\n") == 1 and b"disk" in done.stderr

    def test_variables_that_steer_the_loader(self, glovebox):
        one_line(glovebox.run("--env", "LD_PRELOAD=/x", "-c", "1"), "LD_PRELOAD")

    def test_unreadable_policies(self, glovebox, tmp_path):
        (tmp_path / "policies").mkdir()
        (tmp_path / "policies" / "mine.yaml").write_text("name: mine\nlimitz: {}\n")
        one_line(glovebox.run("--policy", "mine", "-c", "1", env={"GLOVEBOX_POLICIES": tmp_path / "policies"}),
                 "mine.yaml:2:1", "limitz")

    def test_a_network_without_a_service(self, glovebox, tmp_path):
        folder = tmp_path / "policies"
        folder.mkdir()
        (folder / "web.yaml").write_text("name: web\ntemplate: python\nlanguages: [python]\nnetwork: {allow: [a.example.org]}\n")
        let_others_in(folder)
        done = glovebox("run", "--private", "--policy", "web", "-c", "1", env={"GLOVEBOX_POLICIES": folder})
        assert (done.returncode, done.stderr) == (
            125, b"glovebox: policy web allows connections, which needs a running service; start one: glovebox serve; "
            b"or choose a policy with network: none\n")
        (tmp_path / "a.py").write_text("1\n")
        done = glovebox("check", "--private", "--policy", "web", "a.py", env={"GLOVEBOX_POLICIES": folder})
        assert (done.returncode, done.stdout) == (0, b"a.py: policy web: allow\n"), "a check connects to nothing"


@pytest.mark.parametrize("value", ["-1", "0", "abc", "", "1 s", "1e3", "99999999999999999999", "0x10", "-0", "1.5.2",
                                   "30d", "∞"])
def test_absurd_times(glovebox, value):
    one_line(glovebox.run("--wall", value, "-c", "1"), "wall")


@pytest.mark.parametrize("value", ["-1", "1", "64", "64mx", "64 MiB", "1000000GiB", "18446744073709551615", "NaN"])
def test_absurd_sizes(glovebox, value):
    one_line(glovebox.run("--memory", value, "-c", "1"), "memory")


@pytest.mark.parametrize("value", ["-0.5", "one", "1/2", "0.0001", "99999999"])
def test_absurd_shares(glovebox, value):
    one_line(glovebox.run("--cpus", value, "-c", "1"), "cpus")


@pytest.mark.parametrize("make, words", [
    (lambda path: None, ["No such file", "check the name"]),
    (lambda path: path.mkdir(), ["is a folder without main.py", "name the file to run"]),
    (lambda path: path.write_bytes(b""), ["is empty"]),
    (lambda path: path.write_bytes(b"print(1)\n\0\n"), ["NUL byte", "line 2"]),
    (lambda path: path.write_bytes(b"# \xe4\nprint(1)\n"), ["not UTF-8", "line 1", "0xe4", "iconv"]),
    (lambda path: path.write_bytes(b"print(1)\n" + b"\xed\xa0\x80"), ["not UTF-8", "line 2"]),
    (lambda path: path.symlink_to(path), ["Too many levels"]),
])
def test_unusable_scripts(glovebox, tmp_path, make, words):
    make(tmp_path / "script.py")
    # Bad text is found before the daemon is asked, but after a daemon was looked for.
    one_line(glovebox.run("script.py"), *words)


def test_unreadable_script(glovebox, tmp_path):
    (tmp_path / "script.py").write_text("1")
    (tmp_path / "script.py").chmod(0)
    tmp_path.chmod(0o755)
    if os.geteuid() != 0:
        one_line(glovebox.run("script.py"), "Permission denied")
        return
    for folder in tmp_path.parents:
        if not folder.stat().st_mode & 0o1:
            folder.chmod(0o711)
    done = subprocess.run(["setpriv", "--reuid", "4242", "--regid", "4242", "--clear-groups",
                           glovebox.program, "run", "script.py"], capture_output=True, cwd=tmp_path,
                          env=glovebox.environment(), check=False)
    one_line(done, "Permission denied", "make it readable, or ask its owner")


@pytest.mark.parametrize("arguments, words", [
    (["-c", ""], ["empty"]),
    (["-"], ["empty"]),
    (["--file", "missing.csv", "-c", "1"], ["missing.csv", "No such file"]),
    (["--file", "missing.csv:/workspace/in/x.csv:ro", "-c", "1"], ["'missing.csv'", "No such file"]),
    (["--file", "here:/etc/passwd", "-c", "1"], ["/etc/passwd", "beneath /workspace"]),
    (["--file", "here:../up", "-c", "1"], ["../up", "beneath /workspace"]),
    (["--file", "here:a/../../up", "-c", "1"], ["beneath /workspace"]),
    (["--env", "novalue", "-c", "1"], ["NAME=VALUE"]),
    (["--env", "=x", "-c", "1"], ["NAME=VALUE"]),
    (["--out", "here", "-c", "1"], ["--out"]),
    (["--out", "/proc/none", "-c", "1"], ["--out"]),
    (["--stdin", "-"], ["both code and input"]),
])
def test_unusable_arguments(glovebox, tmp_path, arguments, words):
    (tmp_path / "here").write_text("x")
    done = glovebox.run(*arguments)
    text = done.stderr.decode()
    assert done.returncode == 125 and text.count("\n") == 1 and done.stdout == b""
    for word in words:
        assert word in text


def test_arguments_that_are_not_utf8(glovebox):
    done = subprocess.run([glovebox.program, "run", "--private", "-c", "1", "--", b"\xff\xfe"],
                          capture_output=True, env=glovebox.environment(), check=False)
    one_line(done, "not UTF-8")


def test_no_template_at_all(glovebox, tmp_path):
    (tmp_path / "empty").mkdir()
    one_line(glovebox.run("--state", tmp_path / "empty", "-c", "1"), "glovebox template build")
    one_line(glovebox.run("--state", tmp_path / "missing", "-c", "1"), "glovebox template build")


def template_in(state, name="minimal"):
    """A template that looks whole, whose root is empty."""
    (state / "templates" / name / "root").mkdir(parents=True)
    manifest = {"name": name, "digest": "sha256:" + "0" * 64,
                "languages": {"python": {"command": ["/usr/bin/python3"], "file": "main.py"}}}
    (state / "templates" / name / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's sandboxes have the user's own id")
def test_a_state_folder_without_permissions(glovebox, tmp_path):
    closed = tmp_path / "closed"
    template_in(closed / "state")
    closed.chmod(0o700)
    for _ in range(2):
        done = glovebox.run("--policy", "minimal", "-c", "1", env={"GLOVEBOX_STATE": str(closed / "state")})
        one_line(done, "lets no other user in", "chmod o+x")
    found = json.loads(glovebox("doctor", "--json", env={"GLOVEBOX_STATE": str(closed / "state")}).stdout)
    state = next(check for check in found["checks"] if check["name"] == "state")
    assert state["health"] == "missing" and "chmod o+x" in state["fix"], state


def test_a_template_that_cannot_be_entered_says_so_every_time(glovebox, tmp_path):
    state = tmp_path / "state"
    template_in(state)
    let_others_in(tmp_path)
    for _ in range(5):
        one_line(glovebox.run("--policy", "minimal", "-c", "1", env={"GLOVEBOX_STATE": str(state)}), "mount '/dev'")


def test_a_part_of_glovebox_is_missing(glovebox, tmp_path):
    shutil.copy(glovebox.program, tmp_path / "glovebox")
    done = subprocess.run([tmp_path / "glovebox", "run", "--private", "-c", "1"], capture_output=True,
                          env=glovebox.environment(), check=False)
    if done.returncode != 0:  # an installed one may be found instead
        one_line(done, "install glovebox again")


@pytest.mark.usefixtures("python_template")
def test_no_root_and_no_user_namespaces(glovebox, tmp_path):
    """A user whom the kernel grants no user namespace: a limit of 0 in a namespace of their own."""
    if os.geteuid() != 0:
        pytest.skip("taking user namespaces away needs root")
    let_others_in(tmp_path)
    script = ("echo 0 > /proc/sys/user/max_user_namespaces && "
              f"exec {glovebox.program} run --private -c 'print(1)'")
    done = subprocess.run(["unshare", "--user", "--map-root-user",
                           "sh", "-c", script], capture_output=True,
                          env=glovebox.environment({"HOME": str(tmp_path)}), check=False, timeout=60)
    if b"max_user_namespaces" in done.stderr or b"unshare:" in done.stderr:
        pytest.skip("cannot take user namespaces away here: " + done.stderr.decode())
    one_line(done, "namespaces", "glovebox doctor")


@pytest.mark.usefixtures("python_template")
def test_the_disk_of_the_host_is_full(glovebox, tmp_path):
    """State, runtime folder and --out lie on a full disk: the run works, what cannot be saved is said."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=False).returncode:
        pytest.skip("cannot mount here")
    try:
        (small / "filler").write_bytes(bytes(60 * 1024))
        done = glovebox.run("--out", small / "out", "-c",
                            "open('big','wb').write(bytes(1 << 20)); print('ran')")
        assert done.stdout == b"ran\n" and done.returncode == 125
        assert done.stderr.count(b"\n") == 1 and b"No space left" in done.stderr
        assert sorted(os.listdir(small)) == ["filler", "out"] and os.listdir(small / "out") == []
        assert (small / "filler").stat().st_size == 60 * 1024
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.usefixtures("python_template")
def test_output_that_cannot_be_written(glovebox):
    with open("/dev/full", "wb") as full:
        process = glovebox.start("run", "--private", "-c", "print('x' * 100000)", stdout=full,
                                 stderr=subprocess.PIPE)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 125 and b"No space left" in stderr


@pytest.mark.usefixtures("python_template")
def test_few_descriptors(glovebox):
    """A shell with a tiny limit of descriptors: works or says so."""
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))

    process = glovebox.start("run", "--private", "-c", "print(1)", stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, preexec_fn=few)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (0, b"1\n") or \
        (process.returncode == 125 and stderr.startswith(b"glovebox: ") and stderr.count(b"\n") == 1)

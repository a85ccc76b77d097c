"""glovebox setup: five questions at a terminal, or options; what it writes is what glovebox serve takes."""

import os
import pty
import select

import pytest
from serving import Serving, let_others_in

pytestmark = pytest.mark.usefixtures("python_template")


@pytest.fixture(name="home")
def home_(glovebox):
    """A data folder that is not there yet but for the templates."""
    state = glovebox.folder / "data"
    state.mkdir()
    (state / "templates").symlink_to(glovebox.state / "templates")
    let_others_in(glovebox.folder)
    glovebox.state = None  # it is not said by the environment
    return state


def at_terminal(glovebox, *arguments, answers):
    """Answers each question when it has been asked. Gives the exit status and what was said."""
    pid, terminal = pty.fork()
    if pid == 0:
        environment = glovebox.environment({"GLOVEBOX_STATE": None})
        os.execve(glovebox.program, ["glovebox", *map(str, arguments)], environment)
    said, asked = b"", 0
    answers = list(answers)
    while True:
        assert select.select([terminal], [], [], 60)[0], said
        try:
            more = os.read(terminal, 4096)
        except OSError:
            break
        if not more:
            break
        said += more
        if answers and said.endswith((b"]: ", b"[y/N] ")) and len(said) > asked:
            asked = len(said)
            os.write(terminal, answers.pop(0).encode())
    assert not answers, said
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode().replace("\r\n", "\n")


def test_five_questions_make_a_service_that_works(glovebox, home):
    file = glovebox.folder / "etc/glovebox.yaml"
    status, said = at_terminal(glovebox, "setup", "--config", file, answers=[
        "data\n", f"{home}\n",            # a wrong answer is said, and asked again
        "0.0.0.0:7070\n", "none\n",       # not loopback
        "ci,agents\n",
        "pip, nowhere\n", "pip, github\n",
        "\n",                             # none: one is built
        "y\n"])
    assert status == 0, said
    for part in ("the data folder is a path that begins with /", "open to other machines", "there is no set 'nowhere'; there are: apt",
                 f"{file}:\n", f'  state: "{home}"\n', f"{home}/policies/online.yaml:\n", "keys to make: ci,agents\n",
                 f"Next: glovebox serve --config {file}\n"):
        assert part in said, (part, said)
    assert [said.count(f"\n{number}. ") + said.startswith(f"{number}. ") for number in range(1, 6)] == [2, 2, 1, 2, 1], said
    lines = said.splitlines()
    assert "key ci:" in lines and "key agents:" in lines, said
    keys = [line for line in lines if line.startswith("glb_")]
    assert len(keys) == 2, said
    assert glovebox("config", "validate", file).returncode == 0
    assert file.stat().st_mode & 0o777 == 0o644
    glovebox.state = home  # for the socket alone
    with Serving(glovebox, "--config", file, env={"GLOVEBOX_STATE": None}) as service:
        for key in keys:
            assert service.run("print(6 * 7)", key=key).json["stdout"] == "42\n"
        policies = service.call("GET", "/v1/policies", key=keys[0]).json["policies"]
        assert "online" in [policy["name"] for policy in policies]
        rules = glovebox("policy", "show", "online").stdout.decode()
        assert "github.com" in rules, rules


def test_options_stand_for_answers_and_other_settings_stay(glovebox, home):
    file = glovebox.folder / "g.yaml"
    file.write_text("# ours\nqueue: 99\nlisten: 127.0.0.1:1\nstate : /nowhere\n")
    file.chmod(0o640)
    before = file.read_text()
    words = ["setup", "--config", file, "--state", home, "--listen", "127.0.0.1:7171", "--templates", "none"]
    shown = glovebox(*words, "--show")
    assert shown.returncode == 0 and file.read_text() == before and b"  listen: \"127.0.0.1:7171\"\n" in shown.stdout, shown
    refused = glovebox(*words)  # no terminal to ask at
    assert refused.returncode == 125 and b"nothing was written; say --yes" in refused.stderr and file.read_text() == before
    done = glovebox(*words, "--yes")
    assert done.returncode == 0, done
    assert file.read_text() == f'# ours\nqueue: 99\nstate: "{home}"\nlisten: "127.0.0.1:7171"\n'
    assert file.stat().st_mode & 0o777 == 0o640 and not (home / "policies").exists()
    again = glovebox("setup", "--config", file, "--yes", "--listen", "none")
    assert again.returncode == 0 and file.read_text() == f'# ours\nqueue: 99\nstate: "{home}"\n', again


@pytest.mark.parametrize(("words", "says"), [
    (["--listen", "7070"], "ADDRESS:PORT"), (["--state", "x"], "begins with /"), (["--keys", "a,,b"], "names with a comma"),
    (["--keys", "k" * 64], "a key's name is up to 63 bytes"), (["--keys", "a\x7f"], "a key's name is"), (["--network", "pip,npm,apt,github,huggingface"], "more than 4"),
    (["--templates", "ruby"], "there is no template 'ruby'; there are: minimal, node"), (["extra"], "setup takes no 'extra'"),
])
def test_wrong_options_write_nothing(glovebox, words, says):
    done = glovebox("setup", "--config", glovebox.folder / "g.yaml", "--yes", *words)
    assert done.returncode == 125 and says in done.stderr.decode(), done
    assert not (glovebox.folder / "g.yaml").exists()


def test_a_key_may_have_any_name_that_key_create_takes(glovebox, home):
    words = ["setup", "--config", glovebox.folder / "g.yaml", "--state", home, "--listen", "none", "--show", "--yes"]
    done = glovebox(*words, "--keys", "CI of Zoë,a/b")
    assert done.returncode == 0 and "keys to make: CI of Zoë,a/b\n" in done.stdout.decode() + done.stderr.decode(), done


def test_keys_are_made_when_the_templates_are_there(glovebox, home):
    (home / "templates").unlink()
    words = ["setup", "--config", glovebox.folder / "g.yaml", "--state", home, "--listen", "none", "--keys", "ci,agents", "--yes"]
    failed = glovebox(*words, "--templates", "minimal", env={"PATH": "/nowhere"})
    assert failed.returncode == 125 and b"key ci:" not in failed.stdout, failed
    assert b"Permission denied" not in failed.stderr and not (home / "daemon").exists(), failed
    done = glovebox(*words, "--templates", "none")
    assert done.returncode == 0 and done.stdout.count(b":\nglb_") == 2 and (home / "daemon").is_dir(), done


def test_the_service_can_read_what_root_writes_under_a_strict_umask(glovebox, home):
    before = os.umask(0o077)
    try:
        done = glovebox("setup", "--config", glovebox.folder / "g.yaml", "--state", home, "--network", "pip", "--templates", "none", "--yes")
    finally:
        os.umask(before)
    assert done.returncode == 0, done
    modes = [(home / name).stat().st_mode & 0o777 for name in ("policies", "policies/online.yaml")]
    assert modes == ([0o755, 0o644] if os.geteuid() == 0 else [0o700, 0o644]), modes


def test_leaving_the_questions_writes_nothing(glovebox, home):
    file = glovebox.folder / "g.yaml"
    assert at_terminal(glovebox, "setup", "--config", file, answers=["\x04"])[0] == 125
    status, said = at_terminal(glovebox, "setup", "--config", file, "--state", home, answers=["\n"] * 4 + ["n\n"])
    assert status == 125 and "nothing was written" in said and not file.exists()

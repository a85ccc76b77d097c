"""Programs and terminals in a sandbox."""

import asyncio

import glovebox
import pytest
from glovebox import PtySize


@pytest.mark.parametrize("cmd, out, err", [
    ("echo a", "a\n", ""), (["echo", "a  b", "$HOME"], "a  b $HOME\n", ""), ("echo e >&2", "", "e\n"),
    ("printf '\\377'", "\ufffd", ""), ("true", "", ""), ("cat </dev/null", "", ""), ("pwd", "/workspace\n", ""),
    ("for i in 1 2 3; do echo $i; done", "1\n2\n3\n", ""), ("echo $((6*7))", "42\n", ""), ("echo '€'", "€\n", ""),
])
async def test_commands(api, cmd, out, err):
    async with await api.sandbox() as sandbox:
        result = await sandbox.commands.run(cmd)
        assert (result.stdout, result.stderr, result.exit_code, result.error) == (out, err, 0, None)


@pytest.mark.parametrize("cmd, code", [("exit 3", 3), ("false", 1), ("kill -9 $$", 137), ("no_such_program_here", 127)])
async def test_another_exit_code_raises(api, cmd, code):
    async with await api.sandbox() as sandbox:
        with pytest.raises(glovebox.CommandExitException) as caught:
            await sandbox.commands.run(f"echo out; echo err >&2; {cmd}")
        assert caught.value.exit_code == code and caught.value.stdout == "out\n" and caught.value.stderr.startswith("err\n")


async def test_the_last_line_of_stderr_is_in_the_message(api):
    async with await api.sandbox() as sandbox:
        with pytest.raises(glovebox.CommandExitException, match="^command ended with exit code 2: ls: .*nope.*No such file"):
            await sandbox.commands.run("echo first >&2; ls nope")


async def test_options(api):
    async with await api.sandbox() as sandbox:
        result = await sandbox.commands.run("pwd; echo $A; cat", cwd="/tmp", envs={"A": "b c"}, stdin="typed\n", user="root")
        assert result.stdout == "/tmp\nb c\ntyped\n"


async def test_what_a_timeout_ends(api):
    async with await api.sandbox() as sandbox:
        with pytest.raises(glovebox.TimeoutException, match="timeout="):
            await sandbox.commands.run("echo a; sleep 25", timeout=0.5)
        assert [each for each in await sandbox.commands.list() if each.state == "running"] == []


async def test_output_as_it_comes(api):
    out, err = [], []
    async with await api.sandbox() as sandbox:
        await sandbox.commands.run("echo a; echo b >&2; echo c", on_stdout=out.append, on_stderr=err.append)
    assert "".join(out) == "a\nc\n" and "".join(err) == "b\n"


async def test_a_callback_that_raises_kills_the_command(api):
    def fail(text):
        raise ValueError(text)

    async with await api.sandbox() as sandbox:
        with pytest.raises(ValueError):
            await sandbox.commands.run("echo a; sleep 25", on_stdout=fail)
        for _ in range(50):
            if not [each for each in await sandbox.commands.list() if each.state == "running"]:
                break
            await asyncio.sleep(0.1)
        else:
            raise AssertionError("it still runs")


async def test_in_the_background(api):
    async with await api.sandbox() as sandbox:
        handle = await sandbox.commands.run("read x; echo got $x; read y; exit 4", background=True, stdin=True, tag="mine")
        listed, = await sandbox.commands.list()
        assert listed.pid == handle.pid and listed.tag == "mine" and listed.state == "running"
        await handle.send_stdin("one\n")
        async for output in handle:
            assert output.stdout == "got one\n"
            break
        again = await sandbox.commands.connect("mine")
        assert again.pid == handle.pid
        await sandbox.commands.send_stdin(handle.pid, "two\n")
        with pytest.raises(glovebox.CommandExitException) as caught:
            await again.wait()
        assert caught.value.exit_code == 4 and caught.value.stdout == "got one\n"
        assert again.exit_code == 4 and again.receipt.startswith("rcp_")


async def test_kill(api):
    async with await api.sandbox() as sandbox:
        handle = await sandbox.commands.run("sleep 25", background=True)
        assert await handle.kill() is True
        with pytest.raises(glovebox.CommandExitException) as caught:
            await handle.wait()
        assert caught.value.exit_code == 137
        assert await sandbox.commands.kill(99999) is False


async def test_disconnect_leaves_it_running(api):
    async with await api.sandbox() as sandbox:
        handle = await sandbox.commands.run("sleep 0.5; echo done > /tmp/done", background=True)
        await handle.disconnect()
        for _ in range(100):
            if await sandbox.files.exists("/tmp/done"):
                return
            await asyncio.sleep(0.1)
        raise AssertionError("it was ended")


async def test_much_output(api):
    async with await api.sandbox() as sandbox:
        result = await sandbox.commands.run("head -c 3000000 /dev/zero | tr '\\0' x")
        assert result.stdout == "x" * 3_000_000


async def test_a_terminal(api):
    async with await api.sandbox() as sandbox:
        handle = await sandbox.pty.create(PtySize(30, 100), cwd="/tmp", envs={"PS1": "$ "}, cmd=("bash", "--norc", "-i"))
        await sandbox.pty.send_stdin(handle.pid, "stty size; pwd\n")
        seen = b""
        async for output in handle:
            seen += output.pty
            if b"30 100" in seen and b"/tmp\r\n" in seen:
                break
        await sandbox.pty.resize(handle.pid, PtySize(10, 20))
        await handle.send_stdin("stty size; exit 5\n")
        with pytest.raises(glovebox.CommandExitException) as caught:
            await handle.wait()
        assert caught.value.exit_code == 5


async def test_a_server_inside(api):
    async with await api.sandbox(policy="server") as sandbox:
        await sandbox.files.write("index.html", "served")
        await sandbox.commands.run("python3 -m http.server 8000 --bind 127.0.0.1", background=True)
        for _ in range(100):
            try:
                answer = await sandbox.request(8000, path="/index.html")
                break
            except glovebox.GloveboxError:
                await asyncio.sleep(0.1)
        assert answer.status == 200 and answer.body == b"served"
        with pytest.raises(glovebox.GloveboxError) as caught:
            await sandbox.request(8000, path="/none")
        assert caught.value.status == 404 and caught.value.code == "port"

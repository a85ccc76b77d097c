"""Sandboxes against a server: code, its results, its ends, and the life of a sandbox."""

import asyncio
import base64
import datetime

import glovebox
import pytest

PNG = b"\x89PNG\r\n\x1a\n"


async def test_names_stay_and_the_last_value_comes_back(api):
    async with await api.sandbox() as sandbox:
        first = await sandbox.run_code("x = 20")
        assert first.text is None and first.error is None and first.results == [] and first.execution_count == 1
        second = await sandbox.run_code("x + 22")
        assert second.text == "42" and second.results[0].json == 42 and second.execution_count == 2
        assert second.receipt.startswith("rcp_") and second.usage["wall_ms"] >= 0


@pytest.mark.parametrize("code, text", [
    ("'a' * 3", "'aaa'"), ("[1, 2]", "[1, 2]"), ("{'a': None}", "{'a': None}"), ("1.5", "1.5"), ("True", "True"),
    ("None", None), ("x = 1", None), ("print(1)", None), ("'\\u00e9\\U0001f600'", "'é😀'"), ("2 ** 200", str(2 ** 200)),
    ("float('nan')", "nan"), ("b'\\xff'", "b'\\xff'"), ("'\\ud800'", "'\\ud800'"),
])
async def test_values(api, code, text):
    result = await api.run(code)
    assert result.status == "ok" and result.text == text, result


@pytest.mark.parametrize("code, out, err", [
    ("print('a')", "a\n", ""), ("import sys; print('e', file=sys.stderr)", "", "e\n"), ("pass", "", ""),
    ("print('\\u20ac')", "€\n", ""), ("import os; os.write(1, b'\\xff')", "\ufffd", ""), ("print('a\\0b')", "a\0b\n", ""),
])
async def test_what_is_printed(api, code, out, err):
    result = await api.run(code + "; None")
    assert (result.stdout, result.stderr) == (out, err)
    assert result.logs.stdout == ([out] if out else []) and result.logs.stderr == ([err] if err else [])


@pytest.mark.parametrize("code, name", [
    ("1 / 0", "ZeroDivisionError"), ("import no_such_module", "ModuleNotFoundError"), ("raise ValueError('x')", "ValueError"),
    ("def", "SyntaxError"), ("import sys; sys.exit(3)", "ProgramFailed"), ("[][1]", "IndexError"),
    ("import os; os._exit(7)", "ContextEnded"),
])
async def test_what_goes_wrong_is_a_result(api, code, name):
    async with await api.sandbox() as sandbox:
        result = await sandbox.run_code(code)
        assert result.status == "error" and result.error.name == name, result.error
        assert (await sandbox.run_code("1")).text == "1"


@pytest.mark.parametrize("code", ["while True: pass", "import time; time.sleep(60)"])
async def test_a_timeout_is_a_limit_that_is_explained(api, code):
    async with await api.sandbox() as sandbox:
        await sandbox.run_code("kept = 1")
        result = await sandbox.run_code(code, timeout=0.3)
        assert result.status == "limit" and result.limit.name == "wall" and result.limit.granted == 300
        assert result.error.name == "LimitExceeded" and result.limit.message in result.explain()
        if result.raw["cell"]["context_state"] == "kept":  # else it did not heed the interrupt in 2 s, on a busy machine
            assert (await sandbox.run_code("kept")).text == "1"


async def test_an_invalid_timeout_is_refused_and_nothing_runs(api):
    async with await api.sandbox() as sandbox:
        for timeout in (-1, -0.001, float("nan"), float("inf")):
            for call in (sandbox.run_code, api.run):
                with pytest.raises(glovebox.InvalidArgumentException, match=f"seconds above 0, not {timeout}"):
                    await call("1", timeout=timeout)
        assert (await sandbox.run_code("1", timeout=0)).text == "1"  # as if none was said


async def test_memory_is_a_limit(api):
    result = await api.run("x = b'a' * (1 << 31)", limits={"memory_bytes": 64 << 20})
    assert result.limit.name == "memory" if result.limit else result.error.name == "MemoryError"


async def test_a_chart_needs_no_savefig(api):
    result = await api.run("import matplotlib.pyplot as plt\nplt.plot([1, 2, 4]); plt.title('growth')", policy="data")
    shown = next(each for each in result.results if each.png)
    assert base64.b64decode(shown.png).startswith(PNG)
    assert shown.chart.type == "line" and shown.chart.title == "growth" and len(shown.chart.elements) == 1
    assert "png" in shown.formats() and "image/png" in shown._repr_mimebundle_()


async def test_the_program_that_users_of_e2b_write(api):
    sandbox = await api.sandbox(policy="data")
    execution = await sandbox.run_code("""
import pandas as pd
import matplotlib.pyplot as plt
df = pd.DataFrame({"x": range(10), "y": [n * n for n in range(10)]})
df.plot(x="x", y="y")
plt.savefig('/tmp/plot.png')
print(df.describe())
""")
    assert execution.error is None and "mean" in execution.stdout and execution.text is None
    assert (await sandbox.files.read("/tmp/plot.png")).startswith(PNG)
    await sandbox.close()


async def test_a_table_has_its_data(api):
    result = (await api.run("import pandas as pd; pd.DataFrame({'a': [1, 2]})", policy="data")).results[0]
    assert result.data["columns"] == ["a"] and result.data["data"] == [[1], [2]] and "<table" in result.html
    bundle = result._repr_mimebundle_()
    assert bundle["text/html"].startswith('<iframe sandbox=""') and "<table" not in bundle["text/html"]


async def test_html_of_a_sandbox_runs_nothing_in_a_notebook(api):
    result = (await api.run("from IPython.display import HTML; HTML('<script>alert(1)</script>\"x')")).results[-1]
    page = result._repr_mimebundle_()["text/html"]
    assert "<script" not in page and 'sandbox=""' in page and "&quot;x" in page


async def test_output_comes_as_it_is_printed(api):
    said, shown, failed = [], [], []
    async with await api.sandbox() as sandbox:
        result = await sandbox.run_code(
            "import sys\nprint('a', flush=True)\nprint('b', file=sys.stderr)\ndisplay(1)\n1 / 0",
            on_stdout=lambda message: said.append((str(message), message.error)),
            on_stderr=lambda message: said.append((str(message), message.error)),
            on_result=shown.append, on_error=failed.append)
    assert "".join(text for text, is_error in said if not is_error) == "a\n"
    assert "".join(text for text, is_error in said if is_error) == "b\n"
    assert [result.text for result in shown] == ["1"] and failed == [result.error]
    assert result.error.name == "ZeroDivisionError"


async def test_a_callback_that_raises_ends_the_run(api):
    class Enough(Exception):
        pass

    def enough(message):
        raise Enough

    async with await api.sandbox() as sandbox:
        with pytest.raises(Enough):
            await sandbox.run_code("import time\nprint(1, flush=True)\ntime.sleep(25)", on_stdout=enough)
        assert (await sandbox.run_code("1", timeout=20)).text == "1"


@pytest.mark.parametrize("language, code, out", [
    ("python", "print(6 * 7)", "42\n"), ("bash", "echo $((6 * 7))", "42\n"),
])
async def test_languages(api, language, code, out):
    assert (await api.run(code, language)).stdout == out
    async with await api.sandbox() as sandbox:
        assert (await sandbox.run_code(code, language=language)).stdout == out


async def test_bash_keeps_its_variables(api):
    async with await api.sandbox() as sandbox:
        await sandbox.run_code("x=5", language="bash")
        assert (await sandbox.run_code("echo $x", language="bash")).stdout == "5\n"


async def test_contexts_have_variables_of_their_own(api):
    async with await api.sandbox() as sandbox:
        other = await sandbox.create_code_context(cwd="/tmp")
        await sandbox.run_code("x = 1")
        assert (await sandbox.run_code("'x' in globals()", context=other)).text == "False"
        assert (await sandbox.run_code("import os; os.getcwd()", context=other)).text == "'/tmp'"
        assert {context.id for context in await sandbox.list_code_contexts()} == {"python", other.id}
        await sandbox.restart_code_context()
        assert (await sandbox.run_code("'x' in globals()")).text == "False"
        await sandbox.remove_code_context(other)
        assert {context.id for context in await sandbox.list_code_contexts()} == {"python"}


async def test_environment_of_one_cell(api):
    async with await api.sandbox(envs={"A": "of the sandbox"}) as sandbox:
        code = "import os; (os.environ.get('A'), os.environ.get('B'))"
        assert (await sandbox.run_code(code)).text == "('of the sandbox', None)"
        assert (await sandbox.run_code(code, envs={"A": "'one'\n", "B": "é"})).text == "(\"'one'\\n\", 'é')"
        said = []
        result = await sandbox.run_code("import os; print(os.environ['B']); os.environ['B']", envs={"B": "two"},
                                        on_stdout=lambda message: said.append(message.line),
                                        on_result=lambda each: said.append(each.text))
        assert result.text == "'two'" and said == ["two\n", "'two'"]
        assert (await sandbox.run_code(code)).text == "('of the sandbox', None)"


async def test_interrupt(api):
    async with await api.sandbox() as sandbox:
        if api.name == "sync":
            import threading
            timer = threading.Timer(0.5, sandbox._inner.interrupt)
            timer.start()
            result = await sandbox.run_code("import time; time.sleep(25)")
            timer.join()
        else:
            running = asyncio.ensure_future(sandbox.run_code("import time; time.sleep(25)"))
            await asyncio.sleep(0.5)
            await sandbox.interrupt()
            result = await running
        assert result.error.name == "KeyboardInterrupt"


async def test_cancellation_interrupts_the_cell(server):
    async with await glovebox.AsyncSandbox.create(socket=server.socket) as sandbox:
        for options in ({}, {"on_stdout": print}):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(sandbox.run_code("import time; time.sleep(25)", **options), 0.5)
            assert (await sandbox.run_code("1", timeout=20)).text == "1"


async def test_its_life(api):
    sandbox = await api.sandbox(metadata={"test": f"life {api.name}"}, timeout=600, idle_timeout=300)
    info = await sandbox.get_info()
    assert info.state == "running" and info.metadata == {"test": f"life {api.name}"} and info.policy
    lives = (info.end_at - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    assert 500 < lives <= 601
    await sandbox.set_timeout(60)
    assert ((await sandbox.get_info()).end_at - info.started_at).total_seconds() < 120
    assert [each.sandbox_id for each in await api.list(metadata={"test": f"life {api.name}"})] == [sandbox.sandbox_id]
    again = await api.connect(sandbox.sandbox_id)
    assert (await again.run_code("1")).text == "1"
    assert await sandbox.is_running()
    assert await sandbox.kill() is True
    assert await sandbox.kill() is False and not await sandbox.is_running()
    await sandbox.close()
    with pytest.raises(glovebox.NotFoundException, match="ended"):
        await api.connect(sandbox.sandbox_id)
    with pytest.raises(glovebox.ConflictException):
        await sandbox.run_code("1")


async def test_pause_keeps_variables(api):
    async with await api.sandbox() as sandbox:
        await sandbox.run_code("x = 1")
        await sandbox.pause()
        assert not await sandbox.is_running()
        with pytest.raises(glovebox.ConflictException):
            await sandbox.run_code("x")
        again = await api.connect(sandbox.sandbox_id)
        assert (await again.run_code("x")).text == "1"


async def test_branches_are_independent(api):
    async with await api.sandbox() as sandbox:
        await sandbox.run_code("x = [1]")
        await sandbox.files.write("f", "parent")
        one, two = await sandbox.branch(2)
        try:
            await one.run_code("x.append(2)")
            assert (await one.run_code("x")).text == "[1, 2]" and (await two.run_code("x")).text == "[1]"
            await one.files.write("f", "branch")
            assert await sandbox.files.read("f") == "parent" and await two.files.read("f") == "parent"
        finally:
            await one.close()
            await two.close()


async def test_checkpoint_and_rollback(api):
    async with await api.sandbox() as sandbox:
        await sandbox.run_code("x = 1")
        before = await sandbox.checkpoint("before")
        await sandbox.run_code("x = 2; open('f', 'w').write('2')")
        assert [each.name for each in await sandbox.checkpoints()] == ["before"] and before.size > 0
        await sandbox.rollback(before)
        assert (await sandbox.run_code("x")).text == "1" and not await sandbox.files.exists("f")
        other, = await sandbox.branch(checkpoint=before)
        assert (await other.run_code("x")).text == "1"
        await other.close()


async def test_a_run_has_files_and_artifacts(api):
    result = await api.run("open('out.bin', 'wb').write(bytes([255]) + open('in/a.txt', 'rb').read())",
                           files={"in/a.txt": "text", "in/b.bin": b"\xff"}, mode="script", language="python")
    artifact, = result.artifacts
    assert artifact.path == "out.bin" and artifact.size == 5
    assert await api.download(artifact) == b"\xfftext"


@pytest.mark.parametrize("data", ["text\n", b"\xff\x00"])
async def test_stdin(api, data):
    result = await api.run("import sys; print(sys.stdin.buffer.read())", mode="script", stdin=data)
    assert result.stdout == f"{data.encode() if isinstance(data, str) else data!r}\n"


async def test_there_is_no_network(api):
    result = await api.run("import socket; socket.create_connection(('192.0.2.1', 80), 1)")
    assert result.status == "error" and result.error.name in ("OSError", "PermissionError", "ConnectionRefusedError")


@pytest.mark.parametrize("options, kind", [
    ({"policy": "no_such"}, glovebox.NotFoundException), ({"template": "no_such"}, glovebox.GloveboxError),
    ({"limits": {"wall_ms": 1 << 50}}, glovebox.InvalidArgumentException),
    ({"limits": {"no_such": 1}}, glovebox.InvalidArgumentException), ({"no_such": 1}, glovebox.InvalidArgumentException),
    ({"language": "cobol"}, glovebox.GloveboxError), ({"files": {"../a": "x"}}, glovebox.InvalidArgumentException),
])
async def test_wrong_requests_raise(api, options, kind):
    with pytest.raises(kind) as caught:
        await api.run("1", **options)
    assert caught.value.message and caught.value.request_id.startswith("req_") and caught.value.status >= 400


async def test_many_at_once(server):
    async with await glovebox.AsyncSandbox.create(socket=server.socket) as sandbox:
        infos = await asyncio.gather(*[sandbox.get_info() for _ in range(200)])
        assert {info.sandbox_id for info in infos} == {sandbox.sandbox_id}


def test_a_fork_has_connections_of_its_own(server):
    import os
    with glovebox.Sandbox(socket=server.socket) as sandbox:
        sandbox.run_code("x = 1")
        child = os.fork()
        if child == 0:
            is_good = all(sandbox.run_code("x").text == "1" for _ in range(20))
            os._exit(0 if is_good else 1)
        assert all(sandbox.run_code("x").text == "1" for _ in range(20))
        assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 0


def test_threads_share_a_sandbox(server):
    from concurrent.futures import ThreadPoolExecutor
    with glovebox.Sandbox(socket=server.socket) as sandbox, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda n: sandbox.run_code(f"{n} + 1").text, range(24))) == [str(n + 1) for n in range(24)]


def test_loops_one_after_the_other_share_a_client(server):
    async def run():
        return (await glovebox.arun("1 + 1", socket=server.socket)).text
    assert [asyncio.run(run()) for _ in range(3)] == ["2"] * 3


async def test_a_daemon_that_is_killed(own_server, own_api):
    sandbox = await own_api.sandbox()
    own_server.kill_daemon()
    with pytest.raises(glovebox.GloveboxError):
        for _ in range(50):
            await sandbox.run_code("1")
    assert (await _until_served(own_api)).text == "2"


async def _until_served(api):
    for _ in range(100):
        try:
            return await api.run("1 + 1")
        except glovebox.GloveboxError:
            await asyncio.sleep(0.1)
    raise AssertionError("the service did not come back")


async def test_a_run_whose_daemon_is_killed_ends_as_lost(own_server, own_api):
    import threading
    printed = []

    def first(message):
        if not printed:
            threading.Thread(target=own_server.kill_daemon).start()
        printed.append(message)

    result = await own_api.run("import time\nprint(1, flush=True)\ntime.sleep(25)", on_stdout=first, mode="script")
    assert printed and result.status == "lost" and result.error.name


@pytest.mark.parametrize("streams", [False, True])
async def test_a_gigabyte_of_output_is_cut_and_reported(api, streams):
    seen = []
    options = {"on_stdout": lambda message: seen.append(len(message.line))} if streams else {}
    done = await api.run("import os\nfor _ in range(1024): os.write(1, b'x' * (1 << 20))", policy="minimal", **options)
    assert done.limit.name == "output" and done.status == "limit" and "output exceeded the limit" in done.explain()
    assert len(done.stdout) < 2 << 20 and sum(seen) < 64 << 20 and (not streams or seen)

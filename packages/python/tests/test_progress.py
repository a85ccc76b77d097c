"""What is told of transfers, imports and builds: numbers that grow, the last of them the whole."""

import io
import os
import pathlib
import shutil
import subprocess
import sys
import types

import glovebox
import pytest
from conftest import BUILD, STATE, folder_for_server
from glovebox import progress, templates
from glovebox.progress import Bar, Progress

MIB = b"x" * (1 << 20)


def is_whole(told, total):
    done = [each.done for each in told]
    return done == sorted(done) and told[-1].done == told[-1].total == total


async def test_uploads_and_downloads(api):
    told = []
    async with await api.sandbox(policy="minimal") as sandbox:
        await sandbox.files.write("a", MIB, on_progress=told.append)
        assert is_whole(told, len(MIB)) and len(told) > 2 and {each.what for each in told} == {"a"}
        assert {each.total for each in told} == {len(MIB)}
        for call in (sandbox.files.read, sandbox.files.read_bytes):
            del told[:]
            assert len(await call("a", on_progress=told.append)) == len(MIB) and is_whole(told, len(MIB))
        del told[:]
        pieces = await sandbox.files.read("a", "stream", on_progress=told.append)
        assert b"".join([piece async for piece in pieces]) == MIB and is_whole(told, len(MIB))
        del told[:]
        size = len(b"".join([piece async for piece in await sandbox.files.download_dir(on_progress=told.append)]))
        assert is_whole(told, size)


@pytest.mark.parametrize("data", [b"", b"x", "text"])
async def test_small_values_are_reported_once(api, data):
    told = []
    async with await api.sandbox(policy="minimal") as sandbox:
        await sandbox.files.write("a", data, on_progress=told.append)
    assert told == [Progress("a", len(data), len(data))]


async def test_a_file_that_is_read_has_a_size_and_a_pipe_has_none(api, tmp_path):
    (tmp_path / "a").write_bytes(MIB)
    told = []
    async with await api.sandbox(policy="minimal") as sandbox:
        with open(tmp_path / "a", "rb") as file:
            file.seek(1000)
            await sandbox.files.write("a", file, on_progress=told.append)
        assert is_whole(told, len(MIB) - 1000) and {each.total for each in told} == {len(MIB) - 1000}
        del told[:]
        await sandbox.files.write("b", io.BytesIO(MIB), on_progress=told.append)
        assert is_whole(told, len(MIB)) and told[0].total is None


async def test_an_artifact_and_a_callback_that_is_a_coroutine(api):
    told = []

    async def tell(each):
        told.append(each)
    done = await api.run("open('a', 'wb').write(b'x' * (1 << 20))", policy="minimal")
    if api.name == "sync":
        glovebox.download(done.artifacts[0], on_progress=told.append, **api.server)
    else:
        await glovebox.adownload(done.artifacts[0], on_progress=tell, **api.server)
    assert is_whole(told, len(MIB))


async def test_a_callback_that_raises_ends_the_upload(api):
    async with await api.sandbox(policy="minimal") as sandbox:
        with pytest.raises(ZeroDivisionError):
            await sandbox.files.write("a", MIB, on_progress=lambda each: 1 // 0)
        assert not await sandbox.files.exists("a")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_line_in_a_terminal_is_gone_at_the_end(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    bar = Bar()
    for done in (0, 3 << 20, 8 << 20):
        bar(Progress("a\x1b[2J", done, 8 << 20))
    said = sys.stderr.getvalue()
    assert said.endswith("\r\033[K") and "a?[2J [........................] 0 of 8 MiB" in said


def test_a_line_in_a_notebook_is_plain_text(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    bar = Bar()
    for done in (0, 1, 4):
        bar(Progress("build x", done, 4, "steps"))
    assert sys.stderr.getvalue().endswith("\rbuild x [########################] 4 of 4 steps\n")


def test_no_progress_is_shown_without_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert progress.listener_of(None, usual=True) is None and progress.listener_of(False, usual=True) is None
    kernel = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(config={"IPKernelApp": {}}))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    assert isinstance(progress.listener_of(None, usual=True), Bar) and progress.listener_of(None) is None
    monkeypatch.setattr(sys, "stderr", None)
    assert progress.listener_of(None, usual=True) is None


@pytest.fixture(name="state")
def state_(monkeypatch):
    folder = pathlib.Path(folder_for_server())
    monkeypatch.setenv("GLOVEBOX_STATE", str(folder / "state"))
    monkeypatch.setenv("GLOVEBOX_PROGRAM", str(BUILD / "glovebox"))
    yield folder
    shutil.rmtree(folder)


def test_an_import_reports_its_progress_in_bytes_of_the_file(state):
    file = str(state / "minimal.tar.gz")
    subprocess.run([BUILD / "glovebox", "template", "export", "minimal", file], check=True, capture_output=True,
                   env={**os.environ, "GLOVEBOX_STATE": str(STATE)})
    told = []
    glovebox.import_template(file, on_progress=told.append)
    assert is_whole(told, os.path.getsize(file)) and told[-1].what == "import minimal.tar.gz"
    assert (state / "state/templates/minimal/manifest.json").exists()
    with pytest.raises(glovebox.UnavailableException, match="no archive"):
        glovebox.import_template(__file__, on_progress=told.append)
    with pytest.raises(glovebox.UnavailableException, match="/nowhere"):
        glovebox.import_template("/nowhere", on_progress=told.append)


def test_a_build_reports_its_steps(state, monkeypatch):
    program = state / "glovebox"
    program.write_text("#!/bin/sh\nfor i in 1 2 3; do echo \"glovebox: template $3: step ($i of 3)\" >&2; done\n"
                       "[ $3 = good ] || { echo glovebox: no network >&2; exit 1; }\n")
    program.chmod(0o755)
    monkeypatch.setenv("GLOVEBOX_PROGRAM", str(program))
    told = []
    glovebox.build_template("good", on_progress=told.append)
    assert [(each.done, each.total, each.unit) for each in told] == [(done, 3, "steps") for done in range(4)]
    with pytest.raises(glovebox.UnavailableException, match="^glovebox: no network$"):
        glovebox.build_template("bad", on_progress=told.append)


def test_the_lines_of_a_build_are_those_of_the_program():
    """STEP reads what src/cli/operate/template_progress.c writes where stderr is no terminal."""
    text = (pathlib.Path(__file__).parents[3] / "src/cli/operate/template_progress.c").read_text()
    assert '"glovebox: template %s: %s (%u of %u)\\n"' in text
    assert templates.STEP.fullmatch("glovebox: template %s: %s (%u of %u)" .replace("%s", "a").replace("%u", "1"))

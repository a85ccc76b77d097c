"""What a server knows beside its sandboxes: glovebox.Server, and what sandboxes say that E2B's do not."""

import io
import zipfile

import glovebox
import pytest


@pytest.fixture(name="whole")
def whole_(api):
    return api.whole_server()


async def test_a_run_that_is_begun_is_asked_for_later(whole):
    run = await whole.start("import time; time.sleep(1); print(1); 2", policy="minimal")
    assert await whole.result(run) is None
    said = []
    done = await whole.follow(run, on_stdout=lambda message: said.append(message.line))
    assert (done.text, "".join(said)) == ("2", "1\n") and (await whole.result(run, wait=9)).text == "2"
    assert run in [row["id"] for row in await whole.runs("ok")]


async def test_a_run_that_is_begun_is_cancelled(whole):
    run = await whole.start("while True: pass", policy="minimal")
    assert (await whole.cancel(run)).status == "cancelled"


async def test_the_files_of_a_run_are_one_archive(api, whole):
    done = await api.run("open('a.txt', 'w').write('x')", policy="minimal")
    archive = zipfile.ZipFile(io.BytesIO(await whole.artifacts(done.id)))
    assert [(name.rpartition("/")[2], archive.read(name)) for name in archive.namelist()] == [("a.txt", b"x")]


async def test_a_command_and_files_that_cannot_be_changed(api):
    done = await api.run(["cat", "a"], policy="minimal", files=[{"path": "a", "content": "x", "read_only": True}])
    assert (done.stdout, done.error) == ("x", None)


async def test_receipts_and_proofs(api, whole):
    receipt = (await api.run("1", policy="minimal")).receipt
    proven = await whole.receipt(receipt, proof=True)
    assert "signatures" in await whole.receipt(receipt) and proven["index"] >= 0
    assert (await whole.opening(receipt))["receipt"] == receipt and "key" in str(await whole.log_key())
    size = int((await whole.log_checkpoint()).splitlines()[1])
    assert await whole.inclusion_proof(0, size) and await whole.consistency_proof(1, size)


async def test_policies_templates_and_limits_are_listed(whole):
    names = [row["name"] for row in (await whole.policies())["policies"]]
    assert "minimal" in names and "minimal" in [row["name"] for row in await whole.templates()]
    assert "wall_ms" in [row["name"] for row in await whole.limits()]
    assert (await whole.health())["status"] == (await whole.health(ready=True))["status"] == "ok"
    assert (await whole.status())["slots"] > 0 and "glovebox_" in await whole.metrics()
    assert "policies" in await whole.network_rules() and await whole.approvals("all") == []
    assert [event async for event in whole_events(whole)] == []


async def whole_events(whole):
    events = whole.connections(last=0, follow=False)
    async for event in (await events if hasattr(events, "__await__") else events):
        yield event


async def test_an_approval_that_does_not_exist(whole):
    with pytest.raises(glovebox.NotFoundException):
        await whole.approval("apr_" + 32 * "0")
    with pytest.raises(glovebox.NotFoundException):
        await whole.decide("apr_" + 32 * "0", "deny")


async def test_names_of_files_that_are_no_utf_8(api):
    name = "n\udcff"
    async with await api.sandbox(policy="minimal") as sandbox:
        await sandbox.files.write(name, "x")
        [entry] = [each for each in await sandbox.files.list() if each.name == name]
        assert entry.path == "/workspace/" + name and await sandbox.files.read(entry.path) == "x"
        assert (await sandbox.files.rename(name, "m\udcfe")).name == "m\udcfe"
        assert not await sandbox.files.exists(name) and await sandbox.files.make_dir(name)
        await sandbox.files.remove(name)
        assert not await sandbox.files.exists(name)


async def test_parts_of_files_links_and_files_that_are_there(api):
    async with await api.sandbox(policy="minimal") as sandbox:
        await sandbox.files.write("a", "0123456789")
        for arguments, part in [((), b"0123456789"), ((3,), b"3456789"), ((3, 2), b"34"), ((0, 2), b"01"), ((-3,), b"789"),
                                ((-3, 2), b"78"), ((8, 99), b"89"), ((0, 0), b"")]:
            assert await sandbox.files.read_bytes("a", *arguments) == part, arguments
        with pytest.raises(glovebox.ConflictException):
            await sandbox.files.write("a", "y", overwrite=False)
        await sandbox.files.write("b", "y", overwrite=False)
        await sandbox.commands.run("ln -s a link; ln -s nowhere lost")
        rows = {entry.name: (entry.type, entry.target, entry.target_type) for entry in await sandbox.files.list()}
        assert rows["link"] == (glovebox.FileType.LINK, "a", glovebox.FileType.FILE)
        assert rows["lost"] == (glovebox.FileType.LINK, "nowhere", None)
        assert len(await sandbox.files.list(limit=2)) == 2


async def test_a_list_that_is_not_whole_is_an_error_unless_a_limit_was_given(api):
    async with await api.sandbox(policy="minimal") as sandbox:
        await sandbox.commands.run("mkdir many; cd many; seq 10001 | xargs touch", timeout=None)
        with pytest.raises(glovebox.InvalidArgumentException, match="limit="):
            await sandbox.files.list("many")
        assert len(await sandbox.files.list("many", limit=20000)) == 10001


async def test_programs_that_have_ended_are_listed_with_all(api):
    async with await api.sandbox(policy="minimal") as sandbox:
        await sandbox.commands.run("true", tag="one")
        assert await sandbox.commands.list() == []
        [row] = await sandbox.commands.list(all=True)
        assert (row.tag, row.state, row.raw["exit_code"]) == ("one", "ended", 0)
        assert (await sandbox.commands.get_info(row.id)).cmd == "true" and "exit_code" not in repr(row)


async def test_deadlines_metadata_and_checkpoints(api):
    async with await api.sandbox(policy="minimal") as sandbox:
        assert sandbox.sandbox_id not in [row.sandbox_id for row in await api.list(state="ended")]
        info = await sandbox.update(idle_timeout=77, metadata={"a": "b"})
        assert info.metadata == {"a": "b"} and info.raw["idle_seconds"] == 77
        await sandbox.update(metadata={})
        assert (await sandbox.get_info()).metadata == {} and not await sandbox.interrupt()
        await sandbox.run_code("x = 1")
        kept = await sandbox.checkpoint("one", context="python")
        [branch] = await sandbox.branch(checkpoint=kept, idle_timeout=55)
        async with branch:
            assert (await branch.run_code("x")).text == "1" and (await branch.get_info()).raw["idle_seconds"] == 55
        await sandbox.remove_checkpoint(kept)
        assert await sandbox.checkpoints() == []
        assert (await sandbox.restart_code_context()).language == "python"


async def test_a_pause_that_keeps_the_files_only(api):
    async with await api.sandbox(policy="minimal") as sandbox:
        await sandbox.files.write("a", "x")
        await sandbox.run_code("x = 1")
        await sandbox.pause(keep="files")
        assert (await sandbox.get_info()).state == "paused"
        await sandbox.resume()
        assert await sandbox.files.read("a") == "x" and (await sandbox.run_code("x")).error.name == "NameError"


async def test_limits_and_expectations_of_a_cell(api):
    async with await api.sandbox(policy="minimal") as sandbox:
        done = await sandbox.run_code("print(1)", limits={"wall_ms": 900}, expect={"stdout": {"type": "application/json"}})
        assert done.raw["limits"]["wall_ms"] == 900 and done.raw["gate"]["verdict"] == "passed"

"""Files of a sandbox: their content, names, folders, streams and changes."""

import asyncio
import io
import tarfile

import glovebox
import pytest
from glovebox import FileType


@pytest.mark.parametrize("data", ["", "text\n", "é😀\n", b"\xff\x00\xfe", b"", b"x" * 700_000, "\r\n"])
async def test_what_was_written_is_read(api, data):
    async with await api.sandbox() as sandbox:
        info = await sandbox.files.write("f", data)
        raw = data.encode() if isinstance(data, str) else data
        assert info.path == "/workspace/f" and info.name == "f" and info.size == len(raw) and info.type is FileType.FILE
        assert await sandbox.files.read("f", format="bytes") == await sandbox.files.read_bytes("f") == raw
        assert await sandbox.files.read("f", format="text") == raw.decode("utf-8", "replace")
        try:
            assert await sandbox.files.read("f") == raw.decode()
        except UnicodeDecodeError:
            assert await sandbox.files.read("f") == raw
        pieces = [piece async for piece in await sandbox.files.read("f", format="stream")]
        assert b"".join(pieces) == raw


@pytest.mark.parametrize("name", ["a b", "é", "%41", "a#b?c", "a&b=c", "-rf", "'\"", "a\nb", "a\\b", "x" * 255, "..a", "+", ";"])
async def test_names(api, name):
    async with await api.sandbox() as sandbox:
        await sandbox.files.write(name, "1")
        await sandbox.files.write(f"/tmp/in/{name}", "2")
        assert await sandbox.files.read(name) == "1" and await sandbox.files.read(f"/tmp/in/{name}") == "2"
        assert [entry.name for entry in await sandbox.files.list()] == [name]
        entry, = await sandbox.files.list("/tmp/in")
        assert entry.path == f"/tmp/in/{name}" and await sandbox.files.read(entry.path) == "2"


@pytest.mark.parametrize("path", ["../a", "a/../../b", "", "a//b", ".", "/proc/self/environ"])
async def test_paths_that_are_refused(api, path):
    async with await api.sandbox() as sandbox:
        with pytest.raises(glovebox.GloveboxError):
            await sandbox.files.write(path, "x")


async def test_a_link_leads_nowhere_outside(api):
    async with await api.sandbox() as sandbox:
        await sandbox.commands.run("ln -s /etc/hostname link; ln -s ../../../../../etc up")
        inside = (await sandbox.commands.run("cat /etc/hostname 2>/dev/null || true")).stdout
        try:
            assert await sandbox.files.read("link") == inside
        except glovebox.NotFoundException:
            assert inside == ""


async def test_folders(api):
    async with await api.sandbox() as sandbox:
        files = sandbox.files
        assert await files.make_dir("a/b") is True and await files.make_dir("a/b") is False
        await files.write_files([{"path": "a/b/c", "data": "1"}, {"path": "a/d", "data": b"22"}])
        assert [(entry.path, entry.type) for entry in await files.list("a")] == [
            ("/workspace/a/b", FileType.DIR), ("/workspace/a/d", FileType.FILE)]
        assert [entry.path for entry in await files.list("/workspace", depth=3)] == [
            "/workspace/a", "/workspace/a/b", "/workspace/a/b/c", "/workspace/a/d"]
        info = await files.get_info("a/d")
        assert info.size == 2 and info.mode == 0o644 and info.modified_time.year >= 2020
        moved = await files.rename("a/d", "a/e")
        assert moved.path == "/workspace/a/e" and not await files.exists("a/d") and await files.exists("a/e")
        await files.remove("a")
        assert await files.list() == []
        for call in (files.read, files.remove, files.get_info):
            with pytest.raises(glovebox.NotFoundException):
                await call("a")


async def test_mode(api):
    async with await api.sandbox() as sandbox:
        await sandbox.files.write("run.sh", "#!/bin/sh\necho ran", mode=0o755)
        assert (await sandbox.commands.run("./run.sh")).stdout == "ran\n"


async def test_a_file_streams_in(api, tmp_path):
    (tmp_path / "big").write_bytes(bytes(range(256)) * 16384)
    async with await api.sandbox() as sandbox:
        with open(tmp_path / "big", "rb") as file:
            assert (await sandbox.files.write("big", file)).size == 4 << 20
        assert (await sandbox.run_code("import hashlib; hashlib.sha256(open('big', 'rb').read()).hexdigest()")).text == repr(
            __import__("hashlib").sha256((tmp_path / "big").read_bytes()).hexdigest())


async def test_a_source_that_fails_leaves_the_old_file(api):
    class Broken(io.RawIOBase):
        def __init__(self):
            self.read_once = False

        def read(self, size=-1):
            if self.read_once:
                raise OSError("the source broke")
            self.read_once = True
            return b"half"

    async with await api.sandbox() as sandbox:
        await sandbox.files.write("f", "old")
        with pytest.raises(OSError, match="the source broke"):
            await sandbox.files.write("f", Broken())
        assert await sandbox.files.read("f") == "old"


async def test_a_full_disk(api):
    async with await api.sandbox(limits={"disk_bytes": 4 << 20}) as sandbox:
        with pytest.raises(glovebox.NotEnoughSpaceException):
            await sandbox.files.write("big", b"\1" * (8 << 20))
        assert not await sandbox.files.exists("big")


async def test_tar(api):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data in (("a", b"1"), ("in/b", b"22")):
            row = tarfile.TarInfo(name)
            row.size = len(data)
            tar.addfile(row, io.BytesIO(data))
    async with await api.sandbox() as sandbox:
        await sandbox.files.upload_dir(packed.getvalue(), "up")
        assert await sandbox.files.read("up/in/b") == "22"
        back = b"".join([piece async for piece in await sandbox.files.download_dir("up")])
        with tarfile.open(fileobj=io.BytesIO(back)) as tar:
            assert tar.extractfile("in/b").read() == b"22"


async def test_changes_are_reported(api):
    async with await api.sandbox() as sandbox:
        watch = await sandbox.files.watch_dir("/workspace", recursive=True)
        seen = []
        await sandbox.files.write("new", "1")
        await sandbox.files.remove("new")
        async for event in watch:
            seen.append((event.name.rsplit("/", 1)[-1], event.type))
            if ("new", "remove") in seen:
                break
        await watch.stop()
        assert ("new", "remove") in seen and len(seen) >= 2


async def test_a_watch_says_why_it_ends(api):
    async with await api.sandbox() as sandbox:
        await sandbox.files.make_dir("gone")
        watch = await sandbox.files.watch_dir("gone")
        await sandbox.files.remove("gone")
        with pytest.raises(glovebox.NotFoundException, match="the watched folder is gone"):
            async for _ in watch:
                pass


async def test_many_files_at_once(server):
    async with await glovebox.AsyncSandbox.create(socket=server.socket) as sandbox:
        await asyncio.gather(*[sandbox.files.write(f"f{n}", str(n)) for n in range(100)])
        assert await asyncio.gather(*[sandbox.files.read(f"f{n}") for n in range(100)]) == [str(n) for n in range(100)]

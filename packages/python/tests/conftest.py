"""What the package's tests share: a server of their own, and both flavours of the client behind one.

A test that takes `api` is written once, with await, and runs twice: for the synchronous flavour Plain makes every call
an awaitable. GLOVEBOX_BUILD names the build folder (build/ of the checkout), GLOVEBOX_STATE the folder with templates."""

import asyncio
import inspect
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import glovebox
import pytest
from glovebox.server import listens

TOP = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("GLOVEBOX_BUILD", TOP / "build")).resolve()
STATE = pathlib.Path(os.environ.get("GLOVEBOX_STATE", BUILD / "state")).resolve()


def pytest_pyfunc_call(pyfuncitem):
    """Tests that are coroutine functions run in a loop of their own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


class Server:
    """`glovebox serve` in a folder of its own."""

    def __init__(self, folder, *arguments):
        self.folder = pathlib.Path(folder)
        self.socket = str(self.folder / "socket")
        self.environment = {**os.environ, "GLOVEBOX_STATE": str(self.folder / "state"), "GLOVEBOX_MEASURE_TEMPLATES": "false",
                            "GLOVEBOX_RUNTIME": str(self.folder / "run")}
        self.arguments = arguments
        for name in ("state", "run"):
            (self.folder / name).mkdir(exist_ok=True)
        if not (self.folder / "state/templates").exists():
            (self.folder / "state/templates").symlink_to(STATE / "templates")
        self.start()

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [BUILD / "glovebox", "serve", "--socket", self.socket, "--log-level", "warning", *self.arguments],
                env=self.environment, stdout=log, stderr=log)
        end = time.monotonic() + 60
        while not listens(self.socket):
            assert self.process.poll() is None and time.monotonic() < end, (self.folder / "log").read_text()
            time.sleep(0.02)

    def daemon(self):
        """The process id of gloveboxd."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return next(int(child) for child in children
                    if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "gloveboxd")

    def kill_daemon(self):
        os.kill(self.daemon(), signal.SIGKILL)

    def key(self, *arguments):
        done = subprocess.run([BUILD / "glovebox", "key", "create", "test", *arguments], env=self.environment, check=True,
                              capture_output=True, text=True)
        return next(word for word in done.stdout.split() if word.startswith("glb_"))

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def folder_for_server():
    """Sandboxes have users of their own: the folder may be passed by them."""
    folder = tempfile.mkdtemp(prefix="glovebox-python-")
    os.chmod(folder, 0o711)
    return folder


@pytest.fixture(scope="session")
def server():
    folder = folder_for_server()
    server = Server(folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture
def own_server():
    """One that a test may kill."""
    folder = folder_for_server()
    server = Server(folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


class Plain:
    """An object of the synchronous flavour whose calls can be awaited."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        value = getattr(self._inner, name)
        if name in ("files", "commands", "pty"):
            return Plain(value)
        return _awaitable(value) if callable(value) else value

    async def __aiter__(self):
        for item in self._inner:
            yield item

    async def __aenter__(self):
        self._inner.__enter__()
        return self

    async def __aexit__(self, *how):
        self._inner.__exit__(*how)


def wrapped(value):
    if isinstance(value, list):
        return [wrapped(each) for each in value]
    kinds = (glovebox.Sandbox, glovebox.CommandHandle)
    is_iterator = inspect.isgenerator(value) or type(value).__name__ == "Watch"
    return Plain(value) if isinstance(value, kinds) or is_iterator else value


def _awaitable(function):
    async def call(*arguments, **options):
        return wrapped(function(*arguments, **options))
    return call


class Flavour:
    def __init__(self, name, **server):
        self.name = name
        self.server = server

    async def sandbox(self, **options):
        if self.name == "sync":
            return Plain(glovebox.Sandbox(**self.server, **options))
        return await glovebox.AsyncSandbox.create(**self.server, **options)

    async def connect(self, sandbox_id):
        if self.name == "sync":
            return Plain(glovebox.Sandbox.connect(sandbox_id, **self.server))
        return await glovebox.AsyncSandbox.connect(sandbox_id, **self.server)

    async def list(self, **options):
        if self.name == "sync":
            return glovebox.Sandbox.list(**options, **self.server)
        return await glovebox.AsyncSandbox.list(**options, **self.server)

    async def run(self, code, language=None, **options):
        if self.name == "sync":
            return glovebox.run(code, language, **self.server, **options)
        return await glovebox.arun(code, language, **self.server, **options)

    def whole_server(self):
        return Plain(glovebox.Server(**self.server)) if self.name == "sync" else glovebox.AsyncServer(**self.server)

    async def download(self, artifact):
        if self.name == "sync":
            return glovebox.download(artifact, **self.server)
        return await glovebox.adownload(artifact, **self.server)


@pytest.fixture(params=["sync", "async"])
def api(request, server):
    return Flavour(request.param, socket=server.socket)


@pytest.fixture(params=["sync", "async"])
def own_api(request, own_server):
    return Flavour(request.param, socket=own_server.socket)

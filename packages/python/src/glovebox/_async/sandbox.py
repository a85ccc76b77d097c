"""A sandbox that keeps its variables and files between runs: a session of the server."""

from __future__ import annotations

import json as json_module
import os
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from .._defaults import async_client
from .._async_stream import sleep
from .._http import fresh_name, hidden, hide, path_of
from ..errors import ConnectionLost, GloveboxError, InvalidArgumentException, NotFoundException, ProtocolError
from ..models import (Checkpoint, CodeContext, Execution, ExecutionError, OutputMessage, Result, SandboxInfo, bytes_of, given,
                      milliseconds)
from .client import RETRY_PAUSES, AsyncClient, tell
from .commands import AsyncCommands, AsyncPty
from .files import AsyncFiles

S = TypeVar("S", bound="AsyncSandboxBase")


async def follow(client: AsyncClient, path: str, request: Dict[str, Any],
                 on_stdout: Optional[Callable[[OutputMessage], Any]] = None,
                 on_stderr: Optional[Callable[[OutputMessage], Any]] = None,
                 on_result: Optional[Callable[[Result], Any]] = None,
                 on_error: Optional[Callable[[ExecutionError], Any]] = None, run: Optional[str] = None) -> Execution:
    """Begins a run or cell, or follows `run`, and reports its events as they come. A stream that broke off is resumed after
    the last event. If the caller leaves by an exception or cancellation, a run that began here is cancelled."""
    headers = {"Accept": "text/event-stream", "Idempotency-Key": fresh_name()}
    process = os.getpid() if run is None else 0  # a forked child that leaves by an exception does not cancel the parent's run
    last: Optional[str] = None
    failed = 0
    try:
        while True:
            try:
                if run is None:
                    response = await client.open("POST", path, json=request, headers=headers)
                else:
                    response = await client.open("GET", path_of("v1", "runs", run, "events"),
                                                 headers={"Last-Event-ID": last} if last else None)
                if "json" in response.headers.get("content-type", ""):  # the run has ended, and its events are no longer kept
                    return Execution(json_module.loads(await response.read()))
                async for event in response.events():
                    failed = 0
                    last = event.id or last
                    if event.kind == "started":
                        run = event.data["id"]
                    elif event.kind == "stdout":
                        await tell(on_stdout, OutputMessage(bytes_of(event.data).decode("utf-8", "replace"),
                                                            time.time_ns(), False))
                    elif event.kind == "stderr":
                        await tell(on_stderr, OutputMessage(bytes_of(event.data).decode("utf-8", "replace"),
                                                            time.time_ns(), True))
                    elif event.kind == "result":
                        await tell(on_result, Result(event.data))
                    elif event.kind == "end":
                        run = None
                        execution = Execution(event.data)
                        try:
                            await response.read()  # read to the end, so that the connection can be kept
                        except GloveboxError:
                            pass
                        if execution.error is not None:
                            await tell(on_error, execution.error)
                        return execution
                raise ConnectionLost("the events ended before the run did")
            except ConnectionLost:
                if failed >= len(RETRY_PAUSES):
                    raise
            await sleep(RETRY_PAUSES[failed])
            failed += 1
    except BaseException:
        if run is not None and process == os.getpid():
            await _cancel(client, run)
        raise


async def _cancel(client: AsyncClient, run: str) -> None:
    try:
        await client.call("DELETE", path_of("v1", "runs", run), timeout=10)
    except GloveboxError:
        pass  # the run or its daemon has ended


def _cells_around(envs: Mapping[str, str]) -> Tuple[str, str]:
    """Python cells that set variables before another cell, and restore them after it."""
    setting = json_module.dumps(dict(envs))
    before = f"""__import__("builtins")._glovebox_env = {{k: __import__("os").environ.get(k) for k in {setting}}}
__import__("os").environ.update({setting})"""
    after = """for _glovebox_key, _glovebox_value in __import__("builtins")._glovebox_env.items():
    if _glovebox_value is None: __import__("os").environ.pop(_glovebox_key, None)
    else: __import__("os").environ[_glovebox_key] = _glovebox_value
del _glovebox_key, _glovebox_value"""
    return before, after


class AsyncSandboxBase:
    """A sandbox: an isolated machine with its own files, interpreters and programs.

    policy: what it may do; default: the server's. template: what is installed in it;
    "this-environment" is a copy of the interpreter and packages of this program. timeout: seconds
    until it ends in any case; idle_timeout: seconds without use after which it ends. limits: as
    {"memory_bytes": 1 << 30}, names in docs/reference/limits.md. network: less of the network than the policy allows.
    url, socket, api_key: the server; ca: a file with its certificate authority. Defaults: GLOVEBOX_URL, GLOVEBOX_SOCKET,
    GLOVEBOX_API_KEY, the usual sockets, and last a private server of this user.
    """

    def __init__(self, template: Optional[str] = None, timeout: Optional[float] = None,
                 metadata: Optional[Mapping[str, str]] = None, envs: Optional[Mapping[str, str]] = None, *,
                 policy: Optional[str] = None, idle_timeout: Optional[float] = None,
                 limits: Optional[Mapping[str, Any]] = None, network: Any = None, cwd: Optional[str] = None,
                 url: Optional[str] = None, socket: Optional[str] = None, api_key: Optional[str] = None,
                 ca: Optional[str] = None, client: Optional[AsyncClient] = None) -> None:
        api_key = hidden(api_key)
        self._client = client or async_client(url=url, socket=socket, api_key=api_key, template=template, ca=ca)
        self._request = given(policy=policy, template=template, ttl_seconds=timeout, idle_seconds=idle_timeout,
                              metadata=dict(metadata) if metadata else None, env=dict(envs) if envs else None,
                              limits=dict(limits) if limits else None, network=network, cwd=cwd)
        self._id: Optional[str] = None
        self._process = os.getpid()

    @property
    def sandbox_id(self) -> str:
        if self._id is None:
            raise InvalidArgumentException("the sandbox has not been made yet: await AsyncSandbox.create()")
        return self._id

    def _is(self: S, row: Mapping[str, Any]) -> S:
        self._id = str(row["id"])
        self.files = AsyncFiles(self._client, self._id)
        self.commands = AsyncCommands(self._client, self._id)
        self.pty = AsyncPty(self.commands)
        return self

    async def _start(self: S) -> S:
        if self._id is None:
            self._is(await self._client.call("POST", "/v1/sessions", self._request,
                                             headers={"Idempotency-Key": fresh_name()}))
        return self

    @classmethod
    async def create(cls: Type[S], template: Optional[str] = None, timeout: Optional[float] = None, **options: Any) -> S:
        """As the constructor; when it returns, the sandbox is running."""
        return await cls(template, timeout, **hide(options))._start()

    @classmethod
    async def connect(cls: Type[S], sandbox_id: str, **server: Any) -> S:
        """An existing sandbox, by its id. A paused one is resumed."""
        client = server.get("client") or async_client(**hide(server))
        row = await client.call("GET", path_of("v1", "sessions", sandbox_id))
        self = cls.__new__(cls)
        AsyncSandboxBase.__init__(self, client=client)
        self._is(row)
        if row["state"] == "paused":
            await self.resume()
        elif row["state"] == "ended":
            raise NotFoundException(f"the sandbox has ended: {(row.get('ended') or {}).get('message')}")
        return self

    @classmethod
    async def list(cls, metadata: Optional[Mapping[str, str]] = None, state: Optional[str] = None,
                   **server: Any) -> List[SandboxInfo]:
        """Running and paused sandboxes, the newest first; `state`: "ended" for those that ended recently, or "all"."""
        from urllib.parse import quote, urlencode
        client = server.get("client") or async_client(**hide(server))
        query = given(limit="100", state=state,
                      metadata=urlencode(dict(metadata), quote_via=quote) if metadata else None)
        return [SandboxInfo.of(row) for row in await client.pages("/v1/sessions", "sessions", query)]

    async def __aenter__(self: S) -> S:
        return await self._start()

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._id or 'not made yet'}>"

    @property
    def _place(self) -> str:
        return path_of("v1", "sessions", self.sandbox_id)

    # --- code ---

    async def run_code(self, code: str, language: Optional[str] = None, context: Union[CodeContext, str, None] = None,
                       on_stdout: Optional[Callable[[OutputMessage], Any]] = None,
                       on_stderr: Optional[Callable[[OutputMessage], Any]] = None,
                       on_result: Optional[Callable[[Result], Any]] = None,
                       on_error: Optional[Callable[[ExecutionError], Any]] = None,
                       envs: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None,
                       request_timeout: Optional[float] = None, *, limits: Optional[Mapping[str, Any]] = None,
                       expect: Optional[Mapping[str, Any]] = None, approval: Optional[str] = None) -> Execution:
        """Runs a cell: variables are kept for the next one; the value of the last expression and open figures come back.

        timeout: seconds that the code may run; `execution.limit` says if it took longer. request_timeout: seconds to wait for
        the answer. limits, expect, approval: as in POST /v1/runs (docs/api.md). Errors of the code are in
        `execution.error`; an exception is raised only if there is no result.
        """
        if language is not None and context is not None:
            raise InvalidArgumentException("language and context exclude each other")
        name = context.id if isinstance(context, CodeContext) else context or language or "python"
        wall = {"wall_ms": milliseconds(timeout)} if timeout else {}
        request = {"code": code, **given(limits={**(limits or {}), **wall} or None, expect=expect, approval=approval)}
        path = self._place + path_of("contexts", name, "run")
        listeners = (on_stdout, on_stderr, on_result, on_error)
        if not envs:
            return await self._run(path, request, listeners, request_timeout)
        if name != "python":
            raise InvalidArgumentException("envs of one cell are for python; give them to Sandbox(envs=…)")
        before, after = _cells_around(envs)
        await self._client.call("POST", path, {"code": before})
        try:
            return await self._run(path, request, listeners, request_timeout)
        finally:
            await self._client.call("POST", path, {"code": after})

    async def _run(self, path: str, request: Dict[str, Any], listeners: Sequence[Any], timeout: Optional[float]) -> Execution:
        if any(listeners):
            return await follow(self._client, path, request, *listeners)
        # If the caller is interrupted or cancelled, the connection is closed, and the server interrupts the cell.
        return Execution(await self._client.call("POST", path, request, timeout=timeout))

    async def create_code_context(self, cwd: Optional[str] = None, language: Optional[str] = None,
                                  envs: Optional[Mapping[str, str]] = None) -> CodeContext:
        """One more interpreter, with variables of its own."""
        request = given(language=language or "python", cwd=cwd or None, env=dict(envs) if envs else None)
        return CodeContext.of(await self._client.call("POST", self._place + "/contexts", request))

    async def list_code_contexts(self) -> List[CodeContext]:
        rows = (await self._client.call("GET", self._place + "/contexts"))["contexts"]
        return [CodeContext.of(row) for row in rows]

    async def remove_code_context(self, context: Union[CodeContext, str]) -> None:
        name = context.id if isinstance(context, CodeContext) else context
        await self._context("DELETE", context, "")
        for pause in RETRY_PAUSES:  # its interpreter ends
            if all(each.id != name for each in await self.list_code_contexts()):
                return
            await sleep(pause)

    async def restart_code_context(self, context: Union[CodeContext, str] = "python") -> CodeContext:
        """A fresh interpreter: its variables are gone."""
        return CodeContext.of(await self._context("POST", context, "/restart"))

    async def interrupt(self, context: Union[CodeContext, str] = "python") -> bool:
        """Raises KeyboardInterrupt in the running cell; False if none runs."""
        return bool((await self._context("POST", context, "/interrupt"))["interrupted"])

    async def _context(self, method: str, context: Union[CodeContext, str], what: str) -> Any:
        name = context.id if isinstance(context, CodeContext) else context
        return await self._client.call(method, self._place + path_of("contexts", name) + what)

    # --- pause, deadlines, end ---

    async def get_info(self) -> SandboxInfo:
        return SandboxInfo.of(await self._client.call("GET", self._place))

    async def is_running(self) -> bool:
        try:
            return (await self.get_info()).state not in ("ended", "paused")
        except NotFoundException:
            return False

    async def set_timeout(self, timeout: float) -> None:
        """Sets the time until it ends, in seconds from now."""
        await self.update(timeout=timeout)

    async def update(self, *, timeout: Optional[float] = None, idle_timeout: Optional[float] = None,
                     metadata: Optional[Mapping[str, str]] = None) -> SandboxInfo:
        """Changes its deadlines, in seconds from now, and its metadata, in one request."""
        request = given(ttl_seconds=timeout, idle_seconds=idle_timeout,
                        metadata=None if metadata is None else dict(metadata))
        return SandboxInfo.of(await self._client.call("PATCH", self._place, request))

    async def pause(self, keep: Optional[str] = None) -> None:
        """Stops all programs in it, which keep their memory, until resume() or connect(). keep="files": ends the programs and
        keeps only the files."""
        await self._client.call("POST", self._place + "/pause", query=given(keep=keep))

    async def resume(self) -> None:
        await self._client.call("POST", self._place + "/resume")

    async def branch(self: S, n: int = 1, *, context: Optional[str] = None,
                     checkpoint: Union[Checkpoint, str, None] = None, metadata: Optional[Mapping[str, str]] = None,
                     timeout: Optional[float] = None, idle_timeout: Optional[float] = None) -> List[S]:
        """n sandboxes with the files and the variables of this one, independent of it and of each other."""
        name = checkpoint.id if isinstance(checkpoint, Checkpoint) else checkpoint
        request = given(context=context, checkpoint=name, metadata=dict(metadata) if metadata else None,
                        ttl_seconds=timeout, idle_seconds=idle_timeout)
        made: List[S] = []
        try:
            for _ in range(n):
                row = await self._client.call("POST", self._place + "/branch", request,
                                              headers={"Idempotency-Key": fresh_name()})
                other = type(self).__new__(type(self))
                AsyncSandboxBase.__init__(other, client=self._client)
                made.append(other._is(row))
        except BaseException:
            for other in made:
                await other.close()
            raise
        return made

    async def checkpoint(self, name: Optional[str] = None, *, context: Optional[str] = None) -> Checkpoint:
        """Saves the files, and the variables of a context, for rollback() and branch()."""
        request = given(name=name or f"checkpoint-{fresh_name()[:8]}", context=context)
        return Checkpoint.of(await self._client.call("POST", self._place + "/checkpoints", request))

    async def checkpoints(self) -> List[Checkpoint]:
        rows = (await self._client.call("GET", self._place + "/checkpoints"))["checkpoints"]
        return [Checkpoint.of(row) for row in rows]

    async def remove_checkpoint(self, checkpoint: Union[Checkpoint, str]) -> None:
        await self._client.call("DELETE", self._checkpoint(checkpoint))

    async def rollback(self, checkpoint: Union[Checkpoint, str]) -> None:
        await self._client.call("POST", self._checkpoint(checkpoint) + "/rollback", {})

    def _checkpoint(self, checkpoint: Union[Checkpoint, str]) -> str:
        return self._place + path_of("checkpoints", checkpoint.id if isinstance(checkpoint, Checkpoint) else checkpoint)

    async def close(self) -> None:
        """Ends the sandbox; no error if it has ended already. In a process that was forked from the one that made it, this does
        nothing; kill() ends it there, too."""
        if self._id is not None and self._process == os.getpid():
            await self.kill()

    async def kill(self) -> bool:
        """Ends it; False if it had ended before."""
        try:
            row = await self._client.call("GET", self._place)
            if row["state"] == "ended":
                return False
            await self._client.call("DELETE", self._place)
            return True
        except NotFoundException:
            return False

    def get_url(self, port: int, path: str = "/") -> str:
        """The URL of a server that listens inside on this port; send get_port_token() as X-Glovebox-Port-Token."""
        return self._client.endpoint.url(f"{self._place}/ports/{port}{path}")

    async def get_port_token(self) -> str:
        return str((await self._client.call("GET", self._place + "/ports:token"))["token"])

    async def request(self, port: int, method: str = "GET", path: str = "/", *, body: Optional[bytes] = None,
                      headers: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None) -> Any:
        """A request to a server that listens inside: its status, headers and body."""
        try:
            return await self._client.request(method, f"{self._place}/ports/{port}{path}", body=body, headers=headers,
                                              timeout=timeout)
        except ProtocolError as error:
            if error.status is None:
                raise
            raise GloveboxError(f"the server inside answered with HTTP status {error.status}", code="port",
                                status=error.status, fault="code") from None

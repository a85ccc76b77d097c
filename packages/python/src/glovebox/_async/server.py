"""Calls that do not belong to one sandbox: runs, receipts and the log, approvals, policies, load of the server."""

from __future__ import annotations

from typing import Any, AsyncIterator, Callable, Dict, List, Mapping, Optional, Union

from .._defaults import async_client
from .._http import Event, fresh_name, hidden, loads, path_of
from ..errors import error_of
from ..models import Execution, ExecutionError, OutputMessage, Result, given
from .client import AsyncClient
from .runs import Code, Files, request_of
from .sandbox import follow


class AsyncServer:
    """A server, found as Sandbox finds it. Dicts and lists are the server's JSON: docs/api.md, approvals.md, receipts.md and
    network.md describe the fields. Some calls need a key with a special scope."""

    def __init__(self, *, url: Optional[str] = None, socket: Optional[str] = None, api_key: Optional[str] = None,
                 ca: Optional[str] = None, client: Optional[AsyncClient] = None) -> None:
        api_key = hidden(api_key)
        self._client = client or async_client(url=url, socket=socket, api_key=api_key, ca=ca)

    async def _get(self, path: str, **query: Any) -> Dict[str, Any]:
        texts = {name: str(value) for name, value in given(**query).items()}
        row: Dict[str, Any] = await self._client.call("GET", path, query=texts)
        return row

    async def _text(self, path: str) -> str:
        return (await self._client.request("GET", path)).body.decode()

    # --- runs ---

    async def start(self, code: Code, language: Optional[str] = None, *, timeout: Optional[float] = None,
                    envs: Optional[Mapping[str, str]] = None, files: Optional[Files] = None,
                    stdin: Union[str, bytes, None] = None, **options: Any) -> str:
        """Begins a run as run() does, and returns its id at once. It goes on when this program ends."""
        request = request_of(code, language, timeout, envs, files, stdin, options)
        headers = {"Prefer": "respond-async", "Idempotency-Key": fresh_name()}
        return str((await self._client.call("POST", "/v1/runs", request, headers=headers))["id"])

    async def result(self, run: str, wait: int = 0) -> Optional[Execution]:
        """The result of a run; None if it is still under way after `wait` seconds (300 at most)."""
        row = await self._get(path_of("v1", "runs", run), wait=wait or None)
        return Execution(row) if "exit_code" in row else None

    async def follow(self, run: str, on_stdout: Optional[Callable[[OutputMessage], Any]] = None,
                     on_stderr: Optional[Callable[[OutputMessage], Any]] = None,
                     on_result: Optional[Callable[[Result], Any]] = None,
                     on_error: Optional[Callable[[ExecutionError], Any]] = None) -> Execution:
        """Reports the events of a run from its beginning, as far as they are kept, and returns its result."""
        return await follow(self._client, "", {}, on_stdout, on_stderr, on_result, on_error, run)

    async def cancel(self, run: str) -> Execution:
        return Execution(await self._client.call("DELETE", path_of("v1", "runs", run)))

    async def runs(self, status: Optional[str] = None) -> List[Dict[str, Any]]:
        """Runs that are under way or whose result is kept, the newest first."""
        return await self._client.pages("/v1/runs", "runs", given(limit="1000", status=status))

    async def artifacts(self, run: str) -> bytes:
        """All files that a run has made, as a zip."""
        return (await self._client.request("GET", path_of("v1", "runs", run, "artifacts.zip"))).body

    # --- receipts and the log ---

    async def receipt(self, receipt: str, proof: bool = False) -> Dict[str, Any]:
        """A signed receipt; with `proof` also the proof that it is in the log. `glovebox receipt verify` checks it."""
        return await self._get(path_of("v1", "receipts", receipt), proof="1" if proof else None)

    async def receipts(self, since: int = 0) -> List[Dict[str, Any]]:
        """Signed receipts and events of the log from index `since` on, each with its `index`. Needs a key with the scope audit,
        which sees those of its tenant."""
        return await self._client.pages("/v1/receipts", "receipts", given(limit="100", cursor=str(since) if since else None))

    async def opening(self, receipt: str) -> Dict[str, Any]:
        """What opens the commitments of a receipt."""
        return await self._get(path_of("v1", "receipts", receipt, "opening"))

    async def log_key(self) -> Dict[str, Any]:
        return await self._get("/v1/log/key")

    async def log_checkpoint(self) -> str:
        """The log's signed size and root."""
        return await self._text("/v1/log/checkpoint")

    async def inclusion_proof(self, index: int, size: Optional[int] = None) -> Dict[str, Any]:
        return await self._get("/v1/log/proof/inclusion", index=index, size=size)

    async def consistency_proof(self, size: int, later: Optional[int] = None) -> Dict[str, Any]:
        """The proof that the log of `size` records is the beginning of the log of `later` records, or of the current one."""
        return await self._get("/v1/log/proof/consistency", **{"from": size, "to": later})

    # --- approvals ---

    async def approvals(self, state: Optional[str] = None, wait: int = 0) -> List[Dict[str, Any]]:
        """Pending approvals, or those in another state; waits up to `wait` seconds for the first."""
        query = given(limit="1000", state=state, wait=str(wait) if wait else None)
        return await self._client.pages("/v1/approvals", "approvals", query)

    async def approval(self, approval: str, wait: int = 0) -> Dict[str, Any]:
        """One approval, with everything that an approver must know; waits up to `wait` seconds for the decision."""
        return await self._get(path_of("v1", "approvals", approval), wait=wait or None)

    async def decide(self, approval: str, decision: str, *, scope: Optional[str] = None,
                     until_seconds: Optional[int] = None, reason: Optional[str] = None) -> Dict[str, Any]:
        """`decision`: approve, deny or revoke; `scope`: once, code, session or time. A person decides, not the program
        that asked."""
        request = given(decision=decision, scope=scope, until_seconds=until_seconds, reason=reason)
        row: Dict[str, Any] = await self._client.call("POST", path_of("v1", "approvals", approval) + ":decide", request)
        return row

    # --- policies, templates, limits, load ---

    async def policies(self) -> Dict[str, Any]:
        """Policies with their effective values, and which is the default."""
        return await self._get("/v1/policies")

    async def templates(self) -> List[Dict[str, Any]]:
        rows: List[Dict[str, Any]] = (await self._get("/v1/templates"))["templates"]
        return rows

    async def limits(self) -> List[Dict[str, Any]]:
        rows: List[Dict[str, Any]] = (await self._get("/v1/limits"))["limits"]
        return rows

    async def health(self, ready: bool = False) -> Dict[str, Any]:
        """Whether runs can be started; with `ready`, whether one would begin at once. `status` is ok or unavailable."""
        response = await self._client.open("GET", "/readyz" if ready else "/healthz", accepts=503)
        row: Dict[str, Any] = loads(await response.read())
        if "error" in row:
            raise error_of(response.status, row)
        return row

    async def status(self) -> Dict[str, Any]:
        """Pools, keys, and limits that were reached."""
        return await self._get("/v1/status")

    async def metrics(self) -> str:
        """Counters and gauges in the text format of Prometheus."""
        return await self._text("/metrics")

    async def network_rules(self) -> Dict[str, Any]:
        """How often each rule of each policy was used."""
        return await self._get("/v1/network/rules")

    async def connections(self, source: Optional[str] = None, *, last: Optional[int] = None, follow: bool = True,
                          all: bool = False) -> AsyncIterator[Event]:
        """Connections of sandboxes as events: those that are kept (the last `last`), then new ones. source: only those of this
        run or session; all: those of all tenants."""
        query = given(source=source, last=None if last is None else str(last), follow=None if follow else "0",
                      all="1" if all else None)
        response = await self._client.open("GET", "/v1/network/connections", query=query)
        async for event in response.events():
            yield event

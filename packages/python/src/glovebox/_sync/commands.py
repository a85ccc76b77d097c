"""Programs and terminals in a sandbox."""
# Written by generate_sync.py from ../_async; change that, not this.

from __future__ import annotations

import os
from typing import Any, Iterator, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

from .._sync_stream import sleep
from .._http import Event, fresh_name, path_of
from ..errors import CommandExitException, ConnectionLost, NotFoundException, ProtocolError, TimeoutException
from ..models import CommandResult, ProcessInfo, PtySize, bytes_of, text_fields
from .client import RETRY_PAUSES, Client, Response, tell

Listener = Optional[Callable[[str], Any]]


class Output(NamedTuple):
    """What a program wrote: `stdout`, `stderr`, or `pty` of a terminal."""
    stdout: Optional[str]
    stderr: Optional[str]
    pty: Optional[bytes]


class CommandHandle:
    """A program that was started. Iterate over it, or wait() for its end; disconnect() leaves it running."""

    def __init__(self, client: Client, place: str, response: Response, row: Mapping[str, Any],
                 events: Iterator[Event]) -> None:
        self._client = client
        self._place = place
        self._response = response
        self._events = events
        self._row = dict(row)
        self._seen = str(row["offset"])
        self._failed = 0  # streams in a row that broke off without an event
        self._is_over = False  # the end event has been read; the first row may already say that the program has ended
        self._stdout: List[str] = []
        self._stderr: List[str] = []

    @classmethod
    def begin(cls, client: Client, place: str, response: Response) -> CommandHandle:
        events = response.events()
        for event in events:
            if event.kind == "started":
                return cls(client, place + path_of(event.data["id"]), response, event.data, events)
            break
        raise ProtocolError("a program's events do not begin with its start")

    @property
    def pid(self) -> int:
        return int(self._row["pid"])

    @property
    def id(self) -> str:
        return str(self._row["id"])

    @property
    def receipt(self) -> Optional[str]:
        """Id of its signed receipt, once it has ended."""
        return self._row.get("receipt")

    @property
    def exit_code(self) -> Optional[int]:
        """None while it runs."""
        code = self._row.get("exit_code")
        return 128 + int(self._row["signal"]) if code is None and self._row.get("signal") else code

    @property
    def stdout(self) -> str:
        return "".join(self._stdout)

    @property
    def stderr(self) -> str:
        return "".join(self._stderr)

    def _reconnect(self) -> None:
        for pause in (*RETRY_PAUSES, None):
            try:
                self._response = self._client.open("GET", self._place + "/events", query={"offset": self._seen})
                self._events = self._response.events()
                return
            except ConnectionLost:
                if pause is None:
                    raise
            sleep(pause)

    def _next(self) -> Event:
        while True:
            try:
                for event in self._events:
                    self._failed = 0
                    if event.id is not None:
                        self._seen = event.id
                    return event
            except ConnectionLost:
                pass
            if self._failed == len(RETRY_PAUSES):
                raise ConnectionLost(f"the events of {self.id} broke off {self._failed} times before the program ended")
            if self._failed:
                sleep(RETRY_PAUSES[self._failed])
            self._failed += 1
            self._reconnect()

    def __iter__(self) -> Iterator[Output]:
        while not self._is_over:
            event = self._next()
            if event.kind == "end":
                self._row, self._is_over = dict(event.data), True
                self._response.close()
            elif event.kind in ("stdout", "stderr"):
                data = bytes_of(event.data)
                text = data.decode("utf-8", "replace")
                if self._row.get("terminal"):
                    yield Output(None, None, data)
                elif event.kind == "stdout":
                    self._stdout.append(text)
                    yield Output(text, None, None)
                else:
                    self._stderr.append(text)
                    yield Output(None, text, None)

    def wait(self, on_stdout: Listener = None, on_stderr: Listener = None,
                   on_pty: Optional[Callable[[bytes], Any]] = None) -> CommandResult:
        """Waits for the end. Another exit code than 0 raises CommandExitException, a timeout TimeoutException."""
        for output in self:
            if output.stdout is not None:
                tell(on_stdout, output.stdout)
            elif output.stderr is not None:
                tell(on_stderr, output.stderr)
            else:
                tell(on_pty, output.pty)
        if self._row.get("timed_out"):
            raise TimeoutException("the command was killed when its timeout was over; give it more with timeout=",
                                   code="timeout", fault="limit")
        code = self.exit_code
        if code != 0:
            raise CommandExitException(self.stdout, self.stderr, -1 if code is None else code, self._row.get("message"))
        return CommandResult(self.stdout, self.stderr, 0)

    def send_stdin(self, data: Union[str, bytes], close: bool = False) -> None:
        self._client.call("POST", self._place + "/stdin",
                                {**text_fields("data", data), **({"close": True} if close else {})})

    def kill(self, signal: str = "SIGKILL") -> bool:
        """Sends a signal to the program and what it started; False if it has ended."""
        try:
            self._client.call("POST", self._place + "/signal", {"signal": signal, "group": True})
            return True
        except NotFoundException:
            return False

    def resize(self, size: PtySize) -> None:
        self._client.call("POST", self._place + "/resize", {"rows": size[0], "columns": size[1]})

    def disconnect(self) -> None:
        """Stops listening; the program goes on."""
        self._response.close()


class Commands:
    def __init__(self, client: Client, session: str) -> None:
        self._client = client
        self._place = path_of("v1", "sessions", session, "processes")

    def start(self, request: Dict[str, Any]) -> CommandHandle:
        """Starts a program by a request of POST …/processes."""
        response = self._client.open("POST", self._place, json=request, headers={
            "Accept": "text/event-stream", "Idempotency-Key": fresh_name()})
        return CommandHandle.begin(self._client, self._place, response)

    def run(self, cmd: Union[str, Sequence[str]], background: bool = False, envs: Optional[Mapping[str, str]] = None,
                  user: Optional[str] = None, cwd: Optional[str] = None, on_stdout: Listener = None,
                  on_stderr: Listener = None, stdin: Union[bool, str, bytes] = False, timeout: Optional[float] = 60,
                  tag: Optional[str] = None) -> Any:
        """Runs a line for bash, or a list of program and arguments. Returns its CommandResult, or with `background`
        a handle at once. `timeout` in seconds, 0 or None for none; `user` is ignored: a sandbox has one."""
        request: Dict[str, Any] = {"shell": cmd} if isinstance(cmd, str) else {"command": list(cmd)}
        request.update({key: value for key, value in (("cwd", cwd), ("tag", tag)) if value is not None})
        if envs:
            request["env"] = dict(envs)
        if stdin is not False:
            request["stdin"] = True
        if timeout and not background:
            request["timeout_ms"] = int(timeout * 1000)
        handle = self.start(request)
        if isinstance(stdin, (str, bytes)):
            handle.send_stdin(stdin, close=True)
        if background:
            return handle
        process = os.getpid()
        try:
            return handle.wait(on_stdout, on_stderr)
        except BaseException:
            handle.disconnect()
            if not handle._is_over and process == os.getpid():  # not in a forked child that leaves by an exception
                handle.kill()
            raise

    def list(self, all: bool = False) -> List[ProcessInfo]:
        """Running programs; with `all` also those that ended recently."""
        rows = (self._client.call("GET", self._place, query={"all": "1"} if all else None))["processes"]
        return [ProcessInfo.of(row) for row in rows]

    def get_info(self, pid: Union[int, str]) -> ProcessInfo:
        return ProcessInfo.of(self._client.call("GET", self._place + path_of(str(pid))))

    def connect(self, pid: Union[int, str]) -> CommandHandle:
        """A handle for a running program, by pid, id or tag; output that is still kept is delivered again."""
        response = self._client.open("GET", self._place + path_of(str(pid)) + "/events")
        return CommandHandle.begin(self._client, self._place, response)

    def kill(self, pid: Union[int, str]) -> bool:
        try:
            self._client.call("POST", self._place + path_of(str(pid)) + "/signal", {"signal": "SIGKILL", "group": True})
            return True
        except NotFoundException:
            return False

    def send_stdin(self, pid: Union[int, str], data: Union[str, bytes], close: bool = False) -> None:
        self._client.call("POST", self._place + path_of(str(pid)) + "/stdin",
                                {**text_fields("data", data), **({"close": True} if close else {})})


class Pty:
    """Terminals."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def create(self, size: PtySize = PtySize(24, 80), cwd: Optional[str] = None,
                     envs: Optional[Mapping[str, str]] = None,
                     cmd: Sequence[str] = ("bash", "-i"), timeout: Optional[float] = None) -> CommandHandle:
        """Starts a shell, or another program, in a terminal; iterate over the handle for its output."""
        request: Dict[str, Any] = {"command": list(cmd), "terminal": {"rows": size[0], "columns": size[1]}}
        if cwd is not None:
            request["cwd"] = cwd
        if envs:
            request["env"] = dict(envs)
        if timeout:
            request["timeout_ms"] = int(timeout * 1000)
        return self._commands.start(request)

    def send_stdin(self, pid: Union[int, str], data: Union[str, bytes]) -> None:
        self._commands.send_stdin(pid, data)

    def resize(self, pid: Union[int, str], size: PtySize) -> None:
        place = self._commands._place + path_of(str(pid)) + "/resize"
        self._commands._client.call("POST", place, {"rows": size[0], "columns": size[1]})

    def kill(self, pid: Union[int, str]) -> bool:
        return self._commands.kill(pid)

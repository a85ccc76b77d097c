"""Inspect (inspect-ai): a sandbox environment named glovebox, one sandbox for each sample."""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List, Optional, Union

from inspect_ai.util import ExecResult, OutputLimitExceededError, SandboxEnvironment, SandboxEnvironmentLimits, sandboxenv
from inspect_ai.util._sandbox.environment import SandboxUserUnsupportedError
from pydantic import BaseModel, ConfigDict

from ..errors import CommandExitException, GloveboxError, InvalidArgumentException, NotFoundException, TimeoutException
from ..models import absolute
from ._common import Workspace


class Options(BaseModel):
    """Task(sandbox=SandboxEnvironmentSpec("glovebox", Options(template="python"))), as those of Sandbox. Logs of an
    evaluation show them: a key is taken from GLOVEBOX_API_KEY only."""
    model_config = ConfigDict(frozen=True)
    template: Optional[str] = None
    policy: Optional[str] = None
    url: Optional[str] = None
    socket: Optional[str] = None


class Environment(Workspace, SandboxEnvironment):
    def __init__(self, config: Any = None) -> None:
        Workspace.__init__(self, **(config.model_dump(exclude_none=True) if isinstance(config, Options) else {}))
        SandboxEnvironment.__init__(self)

    @classmethod
    def config_deserialize(cls, config: Dict[str, Any]) -> Options:
        return Options(**config)

    @classmethod
    async def sample_init(cls, task_name: str, config: Any, metadata: Dict[str, str]) -> Dict[str, Any]:
        return {"default": cls(config)}

    @classmethod
    async def sample_cleanup(cls, task_name: str, config: Any, environments: Dict[str, Any], interrupted: bool) -> None:
        for environment in environments.values():
            await asyncio.to_thread(environment.close)

    async def exec(self, cmd: List[str], input: Union[str, bytes, None] = None, cwd: Optional[str] = None,
                   env: Optional[Dict[str, str]] = None, user: Optional[str] = None, timeout: Optional[int] = None,
                   timeout_retry: bool = True, concurrency: bool = True) -> ExecResult:
        if user is not None:
            raise SandboxUserUnsupportedError(f"a sandbox of glovebox has one user; nothing runs as {user!r}")
        done = await asyncio.to_thread(self._exec, cmd, input, cwd, env, timeout)
        largest = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        for text in (done.stdout, done.stderr):
            if len(text.encode("utf-8", "replace")) > largest:
                raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, text[:largest])
        return done

    def _exec(self, cmd: List[str], input: Any, cwd: Any, env: Any, timeout: Optional[int]) -> ExecResult:
        options: Dict[str, Any] = {} if input is None else {"stdin": input}
        try:
            done = self.sandbox.commands.run(cmd, cwd=None if cwd is None else absolute(cwd), envs=env, timeout=timeout, **options)
            return ExecResult(True, 0, done.stdout, done.stderr)
        except CommandExitException as error:
            return ExecResult(False, error.exit_code, error.stdout, error.stderr)
        except TimeoutException as error:
            raise TimeoutError(error.message) from None
        except InvalidArgumentException as error:
            if error.code not in ("no_program", "not_executable"):
                raise
            return ExecResult(False, 127 if error.code == "no_program" else 126, "", error.message)

    async def write_file(self, file: str, contents: Union[str, bytes]) -> None:
        try:
            await asyncio.to_thread(self.sandbox.files.write, file, contents)
        except GloveboxError as error:
            if await asyncio.to_thread(self._is_folder, file):
                raise IsADirectoryError(error.message) from None
            raise PermissionError(error.message) from None

    async def read_file(self, file: str, text: bool = True) -> Any:
        if await asyncio.to_thread(self._is_folder, file):
            raise IsADirectoryError(file)
        data = await asyncio.to_thread(self._read, file)
        return data.decode() if text else data

    def _is_folder(self, file: str) -> bool:
        try:
            return str(self.sandbox.files.get_info(absolute(file)).type.value) == "dir"
        except GloveboxError:
            return False

    def _read(self, file: str) -> bytes:
        try:
            largest = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
            if self.sandbox.files.get_info(absolute(file)).size > largest:
                raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
            return self.sandbox.files.read_bytes(absolute(file))
        except NotFoundException as error:
            raise FileNotFoundError(error.message) from None


sandboxenv(name="glovebox")(Environment)

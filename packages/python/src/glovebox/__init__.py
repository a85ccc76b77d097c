"""glovebox: runs code that language models write in a sandbox on your own machine.

    from glovebox import Sandbox
    with Sandbox() as sandbox:
        print(sandbox.run_code("6 * 7").text)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from ._async.commands import AsyncCommandHandle as AsyncCommandHandle
    from ._async.runs import adownload as adownload, arun as arun
    from ._async.server import AsyncServer as AsyncServer
    from ._sync.server import Server as Server
    from ._async_sandboxes import AsyncSandbox as AsyncSandbox
    from ._sandboxes import Sandbox as Sandbox
    from ._async.functions import amap as amap
    from ._sync.functions import map as map
    from ._sync.commands import CommandHandle as CommandHandle
    from ._sync.runs import download as download, run as run
    from .progress import Progress as Progress
    from .templates import build_template as build_template, import_template as import_template
    from ._values import Array as Array, Table as Table
    from .docker import DockerSandbox as DockerSandbox
    from .functions import App as App, Function as Function, FunctionCall as FunctionCall, Image as Image
    from .modeltools import Tools as Tools, prompt as prompt, tools as tools
    from .errors import (
        AuthenticationException as AuthenticationException, CommandExitException as CommandExitException,
        ConflictException as ConflictException, ConnectionLost as ConnectionLost, FunctionError as FunctionError,
        GloveboxError as GloveboxError, InvalidArgumentException as InvalidArgumentException,
        NotEnoughSpaceException as NotEnoughSpaceException, NotFoundException as NotFoundException,
        ProtocolError as ProtocolError, RateLimitException as RateLimitException, SandboxException as SandboxException,
        TimeoutException as TimeoutException, UnavailableException as UnavailableException)
    from .models import (
        Artifact as Artifact, Chart as Chart, Checkpoint as Checkpoint, CodeContext as CodeContext,
        CommandResult as CommandResult, Denial as Denial, EntryInfo as EntryInfo, Execution as Execution,
        ExecutionError as ExecutionError, FileType as FileType, FilesystemEvent as FilesystemEvent, Limit as Limit,
        Logs as Logs, OutputMessage as OutputMessage, ProcessInfo as ProcessInfo, PtySize as PtySize, Result as Result,
        SandboxInfo as SandboxInfo)

__version__ = "0.1.0"

# A module is loaded when one of its names is first used, so that `import glovebox` is fast.
_PLACES = {
    "_sandboxes": ("Sandbox",),
    "_async_sandboxes": ("AsyncSandbox",),
    "_sync.runs": ("run", "download"),
    "_async.runs": ("arun", "adownload"),
    "_sync.server": ("Server",),
    "_async.server": ("AsyncServer",),
    "_sync.functions": ("map",),
    "_async.functions": ("amap",),
    "_values": ("Array", "Table"),
    "docker": ("DockerSandbox",),
    "functions": ("App", "Function", "FunctionCall", "Image"),
    "progress": ("Progress",),
    "templates": ("build_template", "import_template"),
    "modeltools": ("Tools", "prompt", "tools"),
    "_sync.commands": ("CommandHandle",),
    "_async.commands": ("AsyncCommandHandle",),
    "errors": ("AuthenticationException", "CommandExitException", "ConflictException", "ConnectionLost", "FunctionError",
               "GloveboxError", "InvalidArgumentException", "NotEnoughSpaceException", "NotFoundException",
               "ProtocolError", "RateLimitException", "SandboxException", "TimeoutException", "UnavailableException"),
    "models": ("Artifact", "Chart", "Checkpoint", "CodeContext", "CommandResult", "Denial", "EntryInfo", "Execution",
               "ExecutionError", "FileType", "FilesystemEvent", "Limit", "Logs", "OutputMessage", "ProcessInfo",
               "PtySize", "Result", "SandboxInfo"),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "App", "Array", "Artifact", "AsyncCommandHandle", "AsyncSandbox", "AsyncServer", "AuthenticationException",
    "Chart", "Checkpoint", "CodeContext", "CommandExitException", "CommandHandle", "CommandResult", "ConflictException",
    "ConnectionLost", "Denial", "DockerSandbox", "EntryInfo", "Execution", "ExecutionError", "FileType",
    "FilesystemEvent", "Function", "FunctionCall", "FunctionError", "GloveboxError", "Image",
    "InvalidArgumentException", "Limit", "Logs", "NotEnoughSpaceException", "NotFoundException", "OutputMessage",
    "ProcessInfo", "Progress", "ProtocolError", "PtySize", "RateLimitException", "Result", "Sandbox", "SandboxException",
    "SandboxInfo", "Server", "Table", "TimeoutException", "Tools", "UnavailableException", "__version__", "adownload", "amap",
    "arun", "build_template", "download", "import_template", "map", "prompt", "run", "tools",
]


def __getattr__(name: str) -> Any:
    place = _PLACE_OF.get(name)
    if place is None:
        raise AttributeError(f"module 'glovebox' has no attribute {name!r}")
    from importlib import import_module
    value = getattr(import_module(f".{place}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return __all__


def load_ipython_extension(shell: Any) -> None:
    """%load_ext glovebox: adds %%sandbox."""
    from .kernel._magic import load
    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    from .kernel._magic import unload
    unload(shell)

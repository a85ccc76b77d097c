"""Finds a server, or starts a private one that the programs of this user share."""

from __future__ import annotations

import os
import socket as sockets
import stat
import time
from typing import TYPE_CHECKING, List, Optional, Tuple

from ._endpoint import Endpoint
from ._http import hidden
from .errors import InvalidArgumentException, UnavailableException

if TYPE_CHECKING:
    from .progress import Wish

START_SECONDS = 30.0
IDLE_SECONDS = 300  # seconds without use after which a private server ends
NAMES = ("GLOVEBOX_URL", "GLOVEBOX_SOCKET", "GLOVEBOX_API_KEY")


def place_of_environment() -> Tuple[Optional[str], Optional[str]]:
    return os.environ.get(NAMES[0]) or None, os.environ.get(NAMES[1]) or None


def key_of_environment() -> Optional[str]:
    return hidden(os.environ.get(NAMES[2]) or None)


def find(url: Optional[str] = None, socket: Optional[str] = None, api_key: Optional[str] = None,
         ca: Optional[str] = None) -> Endpoint:
    """The server that the arguments name, else the environment, else one on the usual sockets, else a private one."""
    if url is not None and socket is not None:
        raise InvalidArgumentException("url= and socket= exclude each other; name one server")
    if url is None and socket is None:
        url, socket = place_of_environment()
    key = api_key or key_of_environment()
    if socket is not None:
        return Endpoint(socket=socket, api_key=key, ca=ca)
    if url is not None:
        return Endpoint(url=url, api_key=key, ca=ca)
    for path in usual_sockets():
        if listens(path):
            return Endpoint(socket=path, api_key=key, ca=ca)
    return private()


def usual_sockets() -> List[str]:
    runtime = os.environ.get("GLOVEBOX_RUNTIME")
    if runtime:
        return [f"{runtime}/glovebox.sock"]
    own = os.environ.get("XDG_RUNTIME_DIR")
    state = os.environ.get("GLOVEBOX_STATE") or (os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")) + "/glovebox"
    return ([f"{own}/glovebox/glovebox.sock"] if own else []) + [f"{state}/run/glovebox.sock", "/run/glovebox/glovebox.sock"]


def listens(path: str) -> bool:
    """Whether a server listens there to which this user may connect."""
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as peer:
        peer.settimeout(5)
        try:
            peer.connect(path)
            return True
        except OSError:
            return False


def packed_file(name: str) -> str:
    """The path of a file of the package for x86-64 Linux; the packages for other platforms do not have it."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "_programs", name)


def program() -> str:
    """The program `glovebox`: GLOVEBOX_PROGRAM, the one in this package, or the one in PATH."""
    import shutil
    named = os.environ.get("GLOVEBOX_PROGRAM")
    packed = packed_file("glovebox")
    found = named or (packed if os.access(packed, os.X_OK) else shutil.which("glovebox"))
    if not found:
        raise UnavailableException(
            "no glovebox server is reachable and the program glovebox is not installed here; set GLOVEBOX_URL and "
            "GLOVEBOX_API_KEY to a server's, or install glovebox on this machine (Linux, x86-64)")
    return found


def private_folder() -> str:
    """The folder of this user's private server, which no other user may read."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = f"{base}/glovebox-private" if base else f"/tmp/glovebox-private-{os.getuid()}"
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise UnavailableException(f"{folder} is not a folder of this user's alone (mode 700); remove it, or set "
                                   "XDG_RUNTIME_DIR")
    return folder


def private(state: Optional[str] = None) -> Endpoint:
    """This user's private server. If several programs start at once, one of them starts the server; it ends by itself when
    it is idle. Each state folder has a server of its own."""
    import fcntl
    folder = private_folder()
    name = f"-{os.path.basename(state)}" if state else ""
    path = f"{folder}/socket{name}"
    with open(f"{folder}/lock{name}", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not listens(path):
            _start(f"{folder}/log{name}", path, state)
    return Endpoint(socket=path, is_private=True)


def import_template(on_progress: Wish = None) -> None:
    """Imports the package's template for this user, if there is none of its name."""
    import subprocess

    from .progress import listener_of
    from .templates import run_import
    archive = packed_file("minimal.tar.gz")
    if not os.path.exists(archive):
        return
    shown = subprocess.run([program(), "template", "show", "minimal"], stdin=subprocess.DEVNULL, capture_output=True,
                           check=False)
    if shown.returncode == 0:
        return
    run_import([], archive, "minimal", listener_of(on_progress, usual=True))


def of_this_environment() -> Endpoint:
    """A private server whose template is a copy of this program's interpreter and packages."""
    from .environment import state
    return private(state())


def _start(log_path: str, path: str, state: Optional[str]) -> None:
    import subprocess
    if state is None:
        import_template()
    command = [program(), "serve", "--socket", path, "--idle-exit", str(IDLE_SECONDS), "--log-level", "warning"]
    if state is not None:
        command += ["--default-policy", "data"]  # its limits are large enough for data libraries
    environment = {"GLOVEBOX_MEASURE_TEMPLATES": "false", **os.environ}  # this user's own files; a gigabyte of them
    if state:
        environment["GLOVEBOX_STATE"] = state
    with open(log_path, "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                   cwd="/", env=environment)
    end = time.monotonic() + START_SECONDS
    while not listens(path):
        if process.poll() is not None or time.monotonic() > end:
            with open(log_path, "rb") as log_file:
                said = log_file.read()[-2000:].decode("utf-8", "replace").strip()
            if process.poll() is None:
                process.terminate()
            raise UnavailableException(f"a private glovebox server does not start: {said or 'it said nothing'}; "
                                       "glovebox doctor says what is missing")
        time.sleep(0.01)

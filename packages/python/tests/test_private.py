"""The private server that the programs of a user share: of ten that start at once one starts it, and nothing is left of it when
all were killed."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import glovebox
import pytest
from conftest import BUILD, STATE, folder_for_server

SOURCE = pathlib.Path(glovebox.__file__).parents[1]
PROGRAM = """
import glovebox.server, signal
glovebox.server.IDLE_SECONDS = 2
sandbox = glovebox.Sandbox(policy="minimal", idle_timeout=5)
print(sandbox.run_code("6 * 7", timeout=10).text, flush=True)
signal.pause()
"""


@pytest.fixture
def home():
    folder = pathlib.Path(folder_for_server())
    (folder / "state").mkdir()
    (folder / "state/templates").symlink_to(STATE / "templates")
    (folder / "run").mkdir(mode=0o711)
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


def servers(folder):
    """The processes that serve on a socket of this folder, and what they have started."""
    found, parents = set(), {}
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes()
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"\0serve\0" in words and str(folder).encode() in words:
            found.add(int(place.name))
    top = {pid for pid in found if parents[pid] not in found}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return top, found
        found |= more


def test_a_service_is_looked_for_where_glovebox_serve_listens(home, monkeypatch):
    for name in ("GLOVEBOX_RUNTIME", "GLOVEBOX_STATE", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    system, own = "/run/glovebox/glovebox.sock", "glovebox.sock"
    assert glovebox.server.usual_sockets() == [f"{home}/.local/state/glovebox/run/{own}", system]
    monkeypatch.setenv("XDG_STATE_HOME", "/x")
    assert glovebox.server.usual_sockets() == [f"/x/glovebox/run/{own}", system]
    monkeypatch.setenv("GLOVEBOX_STATE", "/y")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/z")
    assert glovebox.server.usual_sockets() == [f"/z/glovebox/{own}", f"/y/run/{own}", system]


def test_ten_programs_at_once_share_a_server_that_ends_after_they_are_killed(home):
    variables = {**os.environ, "PYTHONPATH": str(SOURCE), "XDG_RUNTIME_DIR": str(home / "run"), "GLOVEBOX_PROGRAM": str(BUILD / "glovebox"),
                 "GLOVEBOX_STATE": str(home / "state"), "GLOVEBOX_RUNTIME": str(home / "run")}
    for name in ("GLOVEBOX_URL", "GLOVEBOX_SOCKET", "GLOVEBOX_API_KEY"):
        variables.pop(name, None)
    programs = [subprocess.Popen([sys.executable, "-c", PROGRAM], env=variables, stdout=subprocess.PIPE, text=True)
                for _ in range(10)]
    try:
        assert [program.stdout.readline() for program in programs] == ["42\n"] * 10
        top, whole = servers(home)
        assert len(top) == 1 and len(whole) >= 3, (top, whole)
    finally:
        for program in programs:
            program.send_signal(signal.SIGKILL)
            program.wait()
            program.stdout.close()
    end = time.monotonic() + 60
    while any(pathlib.Path(f"/proc/{pid}").exists() for pid in whole):
        assert time.monotonic() < end, servers(home)
        time.sleep(0.05)
    assert sorted(path.name for path in (home / "run/glovebox-private").iterdir()) in (["lock", "log"], ["lock", "log", "socket"])
    assert glovebox.server.listens(str(home / "run/glovebox-private/socket")) is False

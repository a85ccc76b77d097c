"""Runs what escapes.def lists, from inside real sandboxes, and checks what stopped each attempt.

First with every wall, as root and as an ordinary user. Then, in a test build, with one wall disabled at
a time: at least one attempt that names this wall must get further, so each wall is known to stand by itself.

GLOVEBOX_BUILD and GLOVEBOX_STATE as in tests/integration. As root all of it runs; else only the user's part."""

import ast
import hashlib
import os
import pathlib
import re

import pytest

from glovebox_server import STATE, Server, build_with_disable_wall

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
ROW = re.compile(r'^(ATTEMPT|ALONE|KNOWN)\((\w+),\s*(\w+),\s*"([^"]*)",\s*"([^"]*)"\)', re.MULTILINE)
WALLS = re.findall(r"^WALL\((\w+)", (TOP / "src/model/walls.def").read_text(encoding="utf-8"), re.MULTILINE)
TOGETHER = 60  # attempts in one sandbox; 256 refused calls are reported of each

# Walls that other walls need: no_new_privs is what lets a process without rights install the last two.
ALSO = {"no_new_privs": ["landlock", "seccomp"], "no_userns": ["seccomp"], "netns": ["landlock"],
        "pidns": ["masked_proc"], "userns": ["no_userns"], "not_dumpable": ["landlock"], "minimal_dev": ["landlock"],
        "mntns": ["landlock"],
        "cgroup_pids": ["rlimits"]}

class Row:
    def __init__(self, kind, name, wall, expected, source):
        self.kind, self.name, self.wall, self.source = kind, name, wall, source
        self.expected = expected.split("|")
        self.text = (HERE / "attempts" / f"{name}.py").read_text(encoding="utf-8")

    def constant(self, name, default):
        """A constant of the attempt: LIMITS is what it asks for, LIMIT the limit that must end it."""
        found = re.search(rf"^{name} = (.*)$", self.text, re.MULTILINE)
        if not found:
            return default
        return eval(compile(ast.parse(found[1], mode="eval"), name, "eval"), {"__builtins__": {}})

    def accepts(self, got):
        return any(got in (f"stopped errno={how}", f"stopped outcome={how}") for how in self.expected)


ROWS = [Row(*found) for found in ROW.findall((HERE / "escapes.def").read_text(encoding="utf-8"))]


def attempt_files(rows):
    files = [{"path": "attempts/escape.py", "content": (HERE / "attempts/escape.py").read_text(encoding="utf-8")}]
    return files + [{"path": f"attempts/{row.name}.py", "content": row.text} for row in rows]


def run_together(server, rows):
    """Gives what each attempt said, by name."""
    result = server.run(code=(HERE / "run_attempts.py").read_text(encoding="utf-8"),
                        args=[row.name for row in rows], files=attempt_files(rows), limits={"wall_ms": 600000, "cpu_ms": 600000})
    said, ends = {}, {}
    for line in result["stdout"].splitlines():
        if line.startswith("@escape "):
            _, name, what = line.split(" ", 2)
            said[name] = what
        elif line.startswith("@ended "):
            _, name, end = line.split(" ", 2)
            ends[name] = end
    for row in rows:
        said.setdefault(row.name, f"said nothing, ended {ends.get(row.name, 'never')}; run: {result['status']}, "
                                  f"{result['limit'] or result['error']} {result['stderr'][-300:]}")
    return said


def run_alone(server, row):
    result = server.run(code=row.text, filename=f"{row.name}.py", limits=row.constant("LIMITS", {}),
                        files=[{"path": "escape.py",
                                "content": (HERE / "attempts/escape.py").read_text(encoding="utf-8")}])
    limit = result["limit"]["name"] if result["limit"] else None
    found = re.search(r"^@escape \w+ (.*)$", result["stdout"], re.MULTILINE)
    wrong = returned_wrongly(server, result)
    if wrong:
        return f"ESCAPED {wrong}"
    if found and not (row.constant("LIMIT", None) == "output" and limit != "output"):
        return found[1]
    if limit and limit == row.constant("LIMIT", None):
        return "stopped outcome=killed"
    return f"said nothing; run: {result['status']}, {result['limit']} {result['stderr'][-300:]}"


def returned_wrongly(server, result):
    """What came back although it must not: bytes of the host, hostile names, bottomless folders."""
    stolen = hashlib.sha256(server.canary.read_bytes()).hexdigest()
    for artifact in result["artifacts"]:
        path = artifact["path"]
        if stolen in artifact["sha256"]:
            return f"the host's file came back as {path}"
        if not path.isprintable() or path.count("/") > 64 or path.endswith((".sock", "passwd")):
            return f"an artifact has the path {path!r}"
    return None


def run_rows(server, rows):
    said = {}
    together = [row for row in rows if row.kind != "ALONE"]
    for first in range(0, len(together), TOGETHER):
        said.update(run_together(server, together[first:first + TOGETHER]))
    for row in rows:
        if row.kind == "ALONE":
            said[row.name] = run_alone(server, row)
    return said


# GLOVEBOX_ESCAPE_EVERY: 3 means a third of the attempts, always the same ones.
PICKED = ROWS[::int(os.environ.get("GLOVEBOX_ESCAPE_EVERY", "1"))]


# GLOVEBOX_ESCAPE_MODES: as whom the service runs, of both unless it is said.
@pytest.fixture(scope="session", params=os.environ.get("GLOVEBOX_ESCAPE_MODES", "root user").split())
def tried(request, tmp_path_factory):
    """Every attempt's line, and the walls that are degraded in this mode."""
    with Server(tmp_path_factory.mktemp(request.param), request.param, HERE / "policies") as server:
        server.start_neighbour((HERE / "neighbour.py").read_text(encoding="utf-8"))
        return run_rows(server, PICKED), server.degraded


@pytest.mark.parametrize("row", PICKED, ids=lambda row: row.name)
def test_wall_stops(tried, row):
    said, degraded = tried
    if row.wall in degraded:
        pytest.skip(f"{row.wall} is degraded in this mode, and receipts say so")
    if row.kind == "KNOWN":
        assert not row.accepts(said[row.name]), "is stopped now: make it an ATTEMPT and say so in SECURITY.md"
        pytest.xfail(f"known and documented: {said[row.name]}")
    assert row.accepts(said[row.name]), f"{row.wall} must stop it ({'|'.join(row.expected)}); {row.source}"


@pytest.fixture(scope="session")
def disable_wall_build():
    return build_with_disable_wall()


@pytest.fixture(scope="session")
def missing_here(tmp_path_factory):
    """Walls that this machine cannot have anyway."""
    with Server(tmp_path_factory.mktemp("plain"), "root", HERE / "policies") as server:
        return server.degraded


# Others that use the processors bound a program's share as the wall does.
@pytest.mark.parametrize("wall", [pytest.param(wall, marks=pytest.mark.alone) if wall == "cgroup_cpu" else wall for wall in WALLS])
def test_wall_stands_by_itself(disable_wall_build, missing_here, tmp_path, wall):
    """Without the wall, an attempt that names it gets further."""
    if wall in missing_here:
        pytest.skip("does not stand on this machine anyway")
    rows = [row for row in ROWS if row.wall == wall and row.kind != "KNOWN"]
    assert rows, "no attempt names this wall"
    disabled = [wall, *ALSO.get(wall, [])]
    with Server(tmp_path, "root", HERE / "policies", disable_wall_build, disabled) as server:
        assert wall not in server.walls, "the receipt names a wall that was disabled"
        if any("neighbour" in row.name for row in rows):
            server.start_neighbour((HERE / "neighbour.py").read_text(encoding="utf-8"))
        quick = [row for row in rows if row.kind == "ATTEMPT"][:40] or rows[:1]
        said = run_rows(server, quick)
        further = [name for name, what in said.items() if not next(
            row for row in rows if row.name == name).accepts(what)]
        if not further and len(quick) < len(rows):
            said = run_rows(server, [row for row in rows if row not in quick])
            further = [name for name, what in said.items() if not next(
                row for row in rows if row.name == name).accepts(what)]
    assert further, f"left out, and nothing changed: {said}"


def test_every_attempt_has_a_row():
    assert {path.stem for path in (HERE / "attempts").glob("*.py")} - {"escape"} == {row.name for row in ROWS}


def test_every_wall_has_an_attempt():
    assert set(WALLS) == {row.wall for row in ROWS}


def test_state_has_the_template():
    assert (STATE / "templates/minimal/manifest.json").exists(), \
        f"no template in {STATE}: run glovebox template build minimal"

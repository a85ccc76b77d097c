"""glovebox template tune: counts which libraries programs import, and proposes modules for zygotes."""

import json
import re

import pytest
import yaml
from conftest import TOP
from fake_daemon import FakeDaemon, plain
from serving import Serving, with_policies

pytestmark = pytest.mark.usefixtures("python_template")

# A look at lines: what stands behind `if False` is counted and costs nothing.
IMPORTS = "if False:\n    import dateutil.parser, numpy; import dateutil\n    import of_the_customer\n"


@pytest.fixture
def service(glovebox):
    env = with_policies(glovebox, {"tells": "template: python", "holds": "template: python\nexpect: {on_fault: withhold}"})
    with Serving(glovebox, tcp=False, env=env) as serving:
        yield serving


def counts(service):
    """{module: programs} and the number of programs, of template python."""
    lines = service.call("GET", "/metrics").body.decode().splitlines()
    found = [re.fullmatch(r'glovebox_template_imports_total\{template="python",module="(\w+)"\} (\d+)', line) for line in lines]
    programs = [int(line.split()[1]) for line in lines if line.startswith('glovebox_template_programs_total{template="python"}')]
    return {row[1]: int(row[2]) for row in found if row}, programs[0]


def tune(service, *words):
    return service.glovebox("template", "tune", *words, "--daemon", service.socket)


def test_a_library_is_counted_once_for_a_program_and_other_names_never(service):
    assert service.run(IMPORTS, policy="tells").json["status"] == "ok"
    assert counts(service) == ({"dateutil": 1, "numpy": 1}, 1)
    assert service.run("print(1)", policy="tells").json["status"] == "ok"
    assert counts(service) == ({"dateutil": 1, "numpy": 1}, 2)


def test_what_a_policy_withholds_is_not_counted(service):
    assert service.run(IMPORTS, policy="holds").json["status"] == "ok"
    assert counts(service) == ({}, 0)


def test_cells_are_counted_as_programs(service):
    session = service.call("POST", "/v1/sessions", {"policy": "tells"}).json["id"]
    for _ in range(2):
        assert service.call("POST", f"/v1/sessions/{session}/contexts/python/run", {"code": IMPORTS}).json["status"] == "ok"
    assert counts(service) == ({"dateutil": 2, "numpy": 2}, 2)


def test_what_many_import_is_proposed(service):
    few = tune(service, "python").stdout.decode()
    assert "0 Python programs" in few and "too few for a proposal" in few, few
    for _ in range(19):
        service.run("pass", policy="tells")
    for _ in range(2):
        service.run(IMPORTS, policy="tells")
    told = tune(service, "python").stdout.decode()
    assert re.search(r"^  dateutil +2 +9 %  proposed$", told, re.M) and re.search(r"^  numpy +2 +9 %  data$", told, re.M), told
    zygotes = json.loads(told[told.index("zygotes: ") + 9:])
    assert zygotes["light"] == [] and zygotes["data"][-1] == "dateutil" and "numpy" in zygotes["data"], zygotes
    answer = json.loads(tune(service, "python", "--json").stdout)
    assert answer["zygotes"] == zygotes and answer["programs"] == 21, answer
    assert {"module": "dateutil", "programs": 2, "set": None} in answer["modules"], answer
    service.run("pass\n" * 3, policy="tells")
    for _ in range(40):
        service.run("pass", policy="tells")
    assert "nothing to change" in tune(service, "python").stdout.decode()


def test_tune_says_what_is_missing(service):
    assert b"which template?" in tune(service).stderr
    assert b"no template 'pyton'" in tune(service, "pyton").stderr
    done = service.glovebox("template", "tune", "python", "--daemon", "/nowhere.sock")
    assert done.returncode != 0 and b"glovebox serve" in done.stderr, done


HOSTILE = ["\x1b[31mred", "a\x07b", "<b>bold</b>", "n" * 5000, "", "a b", "k.l", "\u202e", "$(id)", "%n%s"]


def test_names_that_a_daemon_makes_up_are_not_shown(glovebox):
    rows = "".join(f'glovebox_template_imports_total{{template="python",module="{name}"}} 90\n' for name in [*HOSTILE, "shapely"])
    text = f'glovebox_template_programs_total{{template="python"}} 100\n{rows}'
    daemon = FakeDaemon(glovebox.folder / "fake.sock", {"GET /metrics": plain(200, text.encode(), "text/plain")})
    told = glovebox("template", "tune", "python", "--daemon", daemon.path)
    daemon.close()
    assert told.returncode == 0 and "shapely" in told.stdout.decode(), told
    assert told.stdout.decode().count(" 90 %") == 1 and not re.search(r"[^\x20-\x7e\n]", told.stdout.decode()), told.stdout


def test_no_more_is_proposed_than_a_zygote_takes(glovebox):
    rows = "".join(f'glovebox_template_imports_total{{template="python",module="m{number}"}} 90\n' for number in range(100))
    text = f'glovebox_template_programs_total{{template="python"}} 100\n{rows}'
    daemon = FakeDaemon(glovebox.folder / "fake.sock", {"GET /metrics": plain(200, text.encode(), "text/plain")})
    answer = json.loads(glovebox("template", "tune", "python", "--daemon", daemon.path, "--json").stdout)
    daemon.close()
    assert len(answer["modules"]) == 100 and max(map(len, answer["zygotes"].values())) == 32, answer["zygotes"]


def test_it_can_be_turned_off(glovebox):
    with Serving(glovebox, tcp=False, env={"GLOVEBOX_COUNT_IMPORTS": "false"}) as serving:
        assert serving.run("import json\nimport numpy", template="python").json["status"] == "ok"
        assert counts(serving) == ({}, 0)


@pytest.mark.parametrize("recipe", sorted((TOP / "templates").glob("*.yaml")), ids=lambda path: path.stem)
def test_only_what_has_python_asks_for_warmed_interpreters(recipe):
    """Another template's would end at once, at each try (`pool.build_failed`); npm of Debian brings python3 along."""
    told = yaml.safe_load(recipe.read_text())
    has_python = any(name == "npm" or name.startswith("python3") for name in told["packages"])
    assert has_python or "zygotes" not in told

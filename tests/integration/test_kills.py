"""Each process of the service is killed under load: it restarts by itself, every caller gets the end of its run, and
no run begins twice. (How soon it is back is measured by `make kills`; here nothing is timed.)"""

import pathlib
import sys

import pytest
from conftest import BUILD, STATE

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "soak"))
import kills  # noqa: E402
import service as services  # noqa: E402

pytestmark = pytest.mark.usefixtures("python_template")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GLOVEBOX_STATE", str(STATE))
        with services.Service(str(BUILD), tmp_path_factory.mktemp("kills"), 32) as one:
            yield one


@pytest.mark.parametrize("what", ["zygote", "holder", "spawner", "gloveboxd"])
def test_killed_programs_restart_and_every_caller_gets_an_error(service, what):
    took, slots, load = kills.kill_once(service, what)
    assert not load.wrong, load.wrong
    assert took != float("inf"), "it did not come back"
    assert slots != float("inf"), "slots stay in use"
    assert load.told["ok"] > 0
    if what in ("zygote", "holder"):
        assert load.told["hung up"] == 0, load.told
    if what == "gloveboxd":
        assert load.told["lost, by its receipt"] > 0, load.told
    if what in ("holder", "spawner"):
        assert load.told["lost"] > 0, load.told

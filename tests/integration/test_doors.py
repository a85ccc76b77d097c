"""A second door (tests/doors/echo_door.c), linked into a gloveboxd for this test: a door needs only engine/service and
doors/http, and nothing else of the daemon."""

import pathlib
import re
import shutil

import pytest
from conftest import BUILD
from serving import Serving, let_others_in

SOURCE = pathlib.Path(__file__).parents[1] / "doors/echo_door.c"
PARTS = ("glovebox-spawner", "glovebox-init", "glovebox-egress", "glovebox-notify")


@pytest.fixture(name="service")
def service_with_echo_door(glovebox, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in PARTS:
        shutil.copy(BUILD / part, folder / part)
    shutil.copy(BUILD / "gloveboxd_with_echo_door", folder / "gloveboxd")
    let_others_in(folder)
    with Serving(glovebox, env={"GLOVEBOX_LIBEXEC": str(folder)}) as serving:
        yield serving


def test_door_includes_service_and_http_alone():
    found = re.findall(r'#include "([^"]+)"', SOURCE.read_text())
    assert found
    for name in found:
        assert name.startswith(("engine/service/", "doors/http/", "json/", "model/", "base/")), name
    assert len(SOURCE.read_text().splitlines()) <= 150


def test_output_is_streamed_as_text(service):
    answer = service.call("POST", "/echo-run", b"import sys\nprint('out')\nsys.stdout.flush()\nprint('err', file=sys.stderr)\n")
    assert answer.status == 200
    assert sorted(answer.body.split()) == [b"err", b"out"]


def test_output_larger_than_a_block_comes_whole(service):
    answer = service.call("POST", "/echo-run", b"print('x' * 50000)")
    assert answer.body == b"x" * 50000 + b"\n"


def test_both_doors_share_runs_and_errors(service):
    before = len(service.call("GET", "/v1/runs").json["runs"])
    assert service.call("POST", "/echo-run", b"print(1)").body == b"1\n"
    assert len(service.call("GET", "/v1/runs").json["runs"]) == before + 1
    assert service.call("POST", "/echo-run", b"x" * 70000).status == 413
    assert service.call("GET", "/echo-run").status == 405
    assert service.call("GET", "/echo").status == 404

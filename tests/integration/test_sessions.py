"""Sessions: created, used, listed, changed, ended; and what becomes of them when nobody ends them."""

import os
import time

import pytest
from session_rig import Daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    from conftest import Glovebox  # pylint: disable=import-outside-toplevel

    folder = tmp_path_factory.mktemp("d")
    started = Daemon(Glovebox(folder), folder)
    yield started
    started.stop()


class TestCells:
    def test_names_stay(self, daemon):
        session = daemon.session()
        first = session.run("x = 41\nprint('set')")
        assert (first["status"], first["stdout"], first["usage"]["start"]) == ("ok", "set\n", "session")
        assert session.value("x + 1") == "42"
        assert session.run("1")["cell"] == {
            "session": session.answer["id"], "context": "python", "number": 3, "interrupted": False,
            "context_state": "kept", "context_end": None}
        session.end()
        daemon.idle()

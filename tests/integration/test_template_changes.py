"""A template that is built again, removed or rolled back is known to the running service at once, and what others run
goes on. Folders are put in place by one rename, as `glovebox template build` does it (src/template/store.c)."""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from conftest import BUILD, TOP
from serving import Serving

sys.path.append(str(TOP / "tests" / "soak"))
from idle import fast_build  # noqa: E402

EXCHANGE, HERE = 2, -100  # renameat2(2), AT_FDCWD


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


class Templates:
    """A state folder with the template `stays`, and those that a test puts there."""

    def __init__(self, place, built):
        self.folder, self.built = place / "templates", built
        self.folder.mkdir(mode=0o755)
        self.source = self.folder / "stays" / "root"
        self.build("stays", 0)

    @staticmethod
    def digest(number):
        return f"sha256:{number:064x}"

    def build(self, name, number, manifest=None):
        """The files are links to one copy: only the manifests differ."""
        made = self.folder / f".{name}-{number}"
        source = self.source
        made.mkdir(mode=0o755)
        subprocess.run(["cp", "-al" if source.exists() else "-a", source if source.exists() else self.built / "root",
                        made / "root"], check=True)
        if manifest is None:
            manifest = json.dumps(json.loads((self.built / "manifest.json").read_text()) | {"digest": self.digest(number)})
        (made / "manifest.json").write_text(manifest)
        if (self.folder / name).exists():
            code = ctypes.CDLL(None, use_errno=True).renameat2(HERE, os.fsencode(made), HERE,
                                                               os.fsencode(self.folder / name), EXCHANGE)
            assert code == 0, os.strerror(ctypes.get_errno())
        else:
            made.rename(self.folder / name)

    def roll_back(self, name, number):
        """To what was there before build(name, number), as `glovebox template rollback` does it: the two are exchanged."""
        code = ctypes.CDLL(None, use_errno=True).renameat2(HERE, os.fsencode(self.folder / f".{name}-{number}"), HERE,
                                                           os.fsencode(self.folder / name), EXCHANGE)
        assert code == 0, os.strerror(ctypes.get_errno())


@pytest.fixture
def templates(glovebox):
    with tempfile.TemporaryDirectory(prefix="glovebox-test-") as place:
        os.chmod(place, 0o755)
        built, glovebox.state = glovebox.state / "templates" / "minimal", pathlib.Path(place)
        yield Templates(pathlib.Path(place), built)


def template_of(serving, name):
    """The digest that runs of a template get now; None if there is none."""
    answer = serving.call("POST", "/v1/runs", {"command": ["true"], "policy": "shell", "template": name})
    ran = answer.status == 200 and answer.json["exit_code"] == 0
    return answer.json["template"]["digest"] if ran else None


def test_a_rebuilt_template_serves_and_no_run_fails(glovebox, templates):
    failed, seen, stop = [], {}, threading.Event()
    with Serving(glovebox, tcp=False) as serving:
        templates.build("comes", 1)
        until(lambda: template_of(serving, "comes") == templates.digest(1))

        def ask(name):
            while not stop.is_set():
                answer = serving.call("POST", "/v1/runs", {"command": ["echo", name], "policy": "shell", "template": name})
                if answer.status != 200 or answer.json["stdout"] != f"{name}\n":
                    failed.append(answer.body)
                else:
                    seen.setdefault(name, set()).add(answer.json["template"]["digest"])
        askers = [threading.Thread(target=ask, args=(name,)) for name in ("stays", "comes", "stays")]
        for asker in askers:
            asker.start()
        try:
            for number in range(2, 7):
                templates.build("comes", number)
                until(lambda number=number: template_of(serving, "comes") == templates.digest(number))
            templates.build("comes", 7, manifest="{ not json")
            until(lambda: "template.refused" in serving.log.read_text())
            assert template_of(serving, "comes") == templates.digest(6), "one that is broken serves nobody"
            templates.roll_back("comes", 7)
            templates.roll_back("comes", 6)
            until(lambda: template_of(serving, "comes") == templates.digest(5))
            templates.roll_back("comes", 6)
            until(lambda: template_of(serving, "comes") == templates.digest(6))
        finally:
            stop.set()
            for asker in askers:
                asker.join()
        listed = {row["name"]: row["digest"] for row in serving.call("GET", "/v1/templates").json["templates"]}
    assert not failed, failed[:3]
    assert seen["stays"] == {templates.digest(0)} and seen["comes"] <= {templates.digest(n) for n in range(1, 7)}, seen
    assert listed == {"stays": templates.digest(0), "comes": templates.digest(6)}


def test_a_session_stays_in_the_template_that_it_began_in(glovebox, templates):
    fast, live_by = fast_build(BUILD, glovebox.state)
    glovebox.program = str(fast / "glovebox")
    templates.build("goes", 1)
    with Serving(glovebox, tcp=False) as serving:
        def cell(session, code):
            answer = serving.call("POST", f"/v1/sessions/{session}/contexts/bash/run", {"code": code})
            assert answer.status == 200, answer.body
            return answer.json
        made = [serving.call("POST", "/v1/sessions", {"policy": "shell", "template": "goes"}) for _ in range(2)]
        assert [answer.status for answer in made] == [201, 201], made[0].body
        first, second = (answer.json["id"] for answer in made)
        cell(first, "echo kept > file")
        templates.build("goes", 2)
        until(lambda: template_of(serving, "goes") == templates.digest(2))
        done = cell(first, "cat file")
        assert done["stdout"] == "kept\n" and done["template"]["digest"] == templates.digest(1), done
        (templates.folder / "goes").rename(templates.folder / ".goes")
        until(lambda: template_of(serving, "goes") is None)
        shutil.rmtree(templates.folder / ".goes")
        assert cell(second, "echo on")["stdout"] == "on\n"
        refused = serving.call("POST", "/v1/sessions", {"policy": "shell", "template": "goes"})
        assert refused.status == 404 and b"no template is named 'goes'" in refused.body, refused.body

        live_by(40)  # what is retired may rest for a minute
        log = serving.log
        until(lambda: log.read_text().count("template.ended") == 1)
        assert templates.digest(2) in log.read_text().split("template.ended")[1].splitlines()[0]
        assert cell(first, "cat file")["stdout"] == "kept\n", "one that is in use does not end"
        live_by(1)
        for session in (first, second):
            assert serving.call("DELETE", f"/v1/sessions/{session}").status in (200, 204)
        until(lambda: log.read_text().count("template.ended") == 2)
        ended = serving.call("GET", f"/v1/sessions/{first}").json
        assert ended["template"]["digest"] == templates.digest(1), "what has ended is told as it was"
        assert template_of(serving, "stays") == templates.digest(0)


def test_one_that_cannot_serve_leaves_the_one_before(glovebox, templates):
    templates.build("broken", 1)
    with Serving(glovebox, tcp=False) as serving:
        templates.build("broken", 2, manifest="{ not json")
        until(lambda: "template.refused" in serving.log.read_text())
        assert template_of(serving, "broken") == templates.digest(1)
        templates.build("broken", 3)
        until(lambda: template_of(serving, "broken") == templates.digest(3))
        templates.build("nothing", 4, manifest=json.dumps({"languages": {}}))
        until(lambda: "no 'digest'" in serving.log.read_text())
        assert template_of(serving, "stays") == templates.digest(0)


def test_an_unreadable_template_is_left_out_and_reported(glovebox, templates):
    templates.build("broken", 1, manifest="{ not json")
    templates.build("empty", 2, manifest="")
    templates.build("nothing", 3, manifest=json.dumps({"languages": {}}))
    (templates.folder / "locked").mkdir()
    (templates.folder / "locked" / "manifest.json").mkdir()
    with Serving(glovebox, tcp=False) as serving:
        said = serving.log.read_text()
        assert template_of(serving, "stays") == templates.digest(0)
        for name in ("broken", "empty", "nothing", "locked"):
            assert f"template={name} " in said, said
            refused = serving.call("POST", "/v1/runs", {"command": ["true"], "policy": "shell", "template": name})
            assert refused.status == 404 and f"no template is named '{name}'".encode() in refused.body, refused.body
        templates.build("broken", 4)
        until(lambda: template_of(serving, "broken") == templates.digest(4))


def test_where_none_can_be_read_the_service_says_why(glovebox, templates):
    (templates.folder / "stays" / "manifest.json").write_text("{ not json")
    done = subprocess.run([glovebox.program, "serve", "--socket", templates.folder.parent / "socket"], timeout=30,
                          env=os.environ | {"GLOVEBOX_STATE": str(glovebox.state)}, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "template 'stays'" in done.stderr and "manifest.json" in done.stderr, done.stderr


def test_invalid_folders_are_not_templates(glovebox, templates):
    """A link to a folder that is none, one whose root is a link to the host, a name that is none. A link to a template is."""
    with Serving(glovebox, tcp=False) as serving, tempfile.TemporaryDirectory() as elsewhere:
        os.chmod(elsewhere, 0o755)
        manifest = (templates.folder / "stays" / "manifest.json").read_text()
        outside = pathlib.Path(elsewhere)
        (outside / "root").mkdir()
        (outside / "manifest.json").write_text(manifest)
        (templates.folder / "Odd Name").mkdir()
        (templates.folder / "Odd Name" / "manifest.json").write_text(manifest)
        hollow = templates.folder / ".hollow"
        hollow.mkdir()
        (hollow / "manifest.json").write_text(manifest)
        (hollow / "root").symlink_to("/")
        hollow.rename(templates.folder / "hollow")
        (templates.folder / "link").symlink_to(outside)
        (templates.folder / "stays").rename(templates.folder / ".elsewhere")
        (templates.folder / "linked").symlink_to(templates.folder / ".elsewhere")
        templates.source = templates.folder / ".elsewhere" / "root"
        templates.build("last", 1)  # everything before it has been looked at by then
        until(lambda: template_of(serving, "last") == templates.digest(1))
        assert template_of(serving, "linked") == templates.digest(0) and template_of(serving, "stays") is None
        for name in ("link", "hollow", "Odd Name"):
            assert template_of(serving, name) is None, name


def test_a_link_to_a_template_elsewhere_is_listed_and_removed(glovebox, templates):
    (templates.folder / "linked").symlink_to(templates.folder / "stays")
    shown = json.loads(glovebox("template", "show", "linked", "--json").stdout)
    listed = json.loads(glovebox("template", "list", "--json").stdout)
    assert shown["digest"] == templates.digest(0) and [row["digest"] for row in listed].count(templates.digest(0)) == 2
    done = glovebox("template", "remove", "linked")
    assert done.returncode == 0, done.stderr
    assert not os.path.lexists(templates.folder / "linked") and not list(templates.folder.glob(".leaving*"))
    assert (templates.source / "usr").is_dir(), "what it led to stays"


def test_unreadable_templates_are_logged_once_and_shown_in_status(glovebox, templates):
    for name in ("broken", "empty"):
        templates.build(name, 1, manifest="{ not json" if name == "broken" else "")

    def warned():
        return {name: [line for line in serving.call("GET", "/v1/status").json["warnings"] if f"template '{name}'" in line]
                for name in ("broken", "empty", "minimal")}

    def refused(name):
        return serving.log.read_text().count(f"template={name} ")
    with Serving(glovebox, tcp=False) as serving:
        assert [len(lines) for lines in warned().values()] == [1, 1, 0], warned()
        for number in (2, 3):
            templates.build("stays", number)
            until(lambda number=number: template_of(serving, "stays") == templates.digest(number))
        assert (refused("broken"), refused("empty")) == (1, 1), serving.log.read_text()

        templates.build("minimal", 4, manifest=json.dumps({"digest": 7}))
        until(lambda: warned()["minimal"])
        ready = serving.call("GET", "/readyz")
        assert ready.status == 503 and b"template 'minimal': " in ready.body and b"manifest.json" in ready.body, ready.body
        templates.build("broken", 5)
        shutil.rmtree(templates.folder / "empty")
        shutil.rmtree(templates.folder / "minimal")
        until(lambda: not any(warned().values()))
        assert template_of(serving, "broken") == templates.digest(5)
        assert b"is not built" in serving.call("GET", "/readyz").body

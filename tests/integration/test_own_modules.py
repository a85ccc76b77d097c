"""A program's own calendar.py comes before the standard one, as with python3, although interpreters are forked from one
that has imported most of the standard library, and numpy and pandas in the set `data`."""

import pytest

NAMES = ("calendar", "csv", "html", "json", "queue", "numpy")
ASK = """
import importlib
print([name for name in %r if (importlib.import_module(name).__file__ or "").startswith("/workspace/")])
""" % (NAMES,)
PLACES = [
    ({}, []),
    ({"calendar.py": "", "queue.py": "", "html/__init__.py": ""}, ["calendar", "html", "queue"]),
    ({"json.txt": "", "csv/data.txt": "", "calendar.pyx": "", "queue": "", "html/page.html": "", "calendar": ""}, []),
    ({"json/__init__.py": "", "numpy.py": ""}, ["json", "numpy"]),
]


@pytest.fixture(params=["", "import pandas\n"], ids=["light", "data"])
def code(request):
    return request.param + ASK


@pytest.mark.parametrize("files,theirs", PLACES, ids=["none", "modules", "others", "packages"])
class TestOwnModules:
    def test_in_a_script(self, daemon, code, files, theirs):
        given = [{"path": name, "content": text} for name, text in files.items()]
        status, answer = daemon.call("POST", "/v1/runs", {"policy": "data", "code": code, "files": given})
        assert (status, answer["stdout"]) == (200, f"{theirs}\n"), answer

    def test_in_the_first_cell(self, daemon, code, files, theirs):
        session = daemon.session()
        try:
            for name, text in files.items():
                response = daemon.open("PUT", f"{session.place}/files/{name}")
                assert response.status in (200, 201), response.read()
            assert session.run(code)["stdout"] == f"{theirs}\n"
        finally:
            session.end()


def test_a_module_that_was_imported_stays_when_a_file_of_its_name_comes(daemon):
    session = daemon.session()
    try:
        assert session.value("import calendar; calendar.__file__") == "'/usr/lib/python3.11/calendar.py'"
        assert daemon.open("PUT", f"{session.place}/files/calendar.py").status in (200, 201)
        assert session.value("import calendar; calendar.__file__") == "'/usr/lib/python3.11/calendar.py'"
    finally:
        session.end()

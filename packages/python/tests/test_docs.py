"""The examples of docs/python.md, and the first of the README, are run as they stand."""

import pathlib
import re
import shutil

import pytest
from conftest import STATE, TOP, Server, folder_for_server

EXAMPLES = re.findall(r"```python\n(.*?)```", (TOP / "docs/python.md").read_text(), re.S)
FIRST, SESSION = re.findall(r"```python\n(from glovebox .*?)```", (TOP / "README.md").read_text(), re.S)


def test_the_first_lines_of_the_readme_make_a_chart(monkeypatch, tmp_path, capsys):
    """Against a server whose template of that name has matplotlib: the one in which these tests run need not have it."""
    if not (STATE / "templates/python/manifest.json").exists():
        pytest.skip("the template python is not built: glovebox template build python")
    folder = pathlib.Path(folder_for_server())
    templates = folder / "state/templates"
    templates.mkdir(parents=True)
    for name in ("minimal", "python", "this-environment"):
        (templates / name).symlink_to((STATE / "templates" / ("python" if name == "this-environment" else name)).resolve())
    server = Server(folder, "--default-policy", "data")
    monkeypatch.setenv("GLOVEBOX_SOCKET", server.socket)
    monkeypatch.chdir(tmp_path)
    try:
        exec(compile(FIRST, "README.md", "exec"), {})
        assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG") and len(FIRST.splitlines()) == 3
        exec(compile(SESSION, "README.md", "exec"), {})
        assert capsys.readouterr().out == "42\n"
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(number, server, monkeypatch, tmp_path, capsys):
    import linecache
    monkeypatch.setenv("GLOVEBOX_SOCKET", server.socket)
    name = str(tmp_path / "example.py")
    (tmp_path / "example.py").write_text(EXAMPLES[number])
    linecache.checkcache(name)
    exec(compile(EXAMPLES[number], name, "exec"), {"__name__": "example", "__file__": name})
    said = capsys.readouterr().out
    expected = ["1.4142135623730951 None\n", "9 [1, 4, 9] 16\n", "{'exit_code': 0, 'output': '42\\n', 'error': ''}\n"]
    assert len(EXAMPLES) == len(expected) and said == expected[number]

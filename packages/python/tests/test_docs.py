"""The examples of docs/python.md are run as they stand."""

import re

import pytest
from conftest import TOP

EXAMPLES = re.findall(r"```python\n(.*?)```", (TOP / "docs/python.md").read_text(), re.S)


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

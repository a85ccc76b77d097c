"""What the traceback of a missing module or file says in an interpreter that was parked: what a model reads, by whatever
interface."""

import pytest

MODULES = [
    ("import xgboost", "glovebox: this template has no xgboost; it has sklearn; its operator can add it: "
                       "glovebox libs request xgboost\n"),
    ("import skimage.io", "glovebox: this template has no skimage; it has PIL, scipy.ndimage; its operator can add it: "
                          "glovebox libs request scikit-image\n"),
    ("import no_such_module", "glovebox: this template has no no_such_module; its operator can add it: glovebox libs request "
                              "no_such_module; a file of your own is sent along (run --file no_such_module.py)\n"),
    ("import pandas; pandas.DataFrame({'a': [1]}).to_parquet('x', engine='fastparquet')",
     "glovebox: this template has no fastparquet; it has pyarrow, sqlite3, openpyxl, csv; its operator can add it: "
     "glovebox libs request fastparquet\n"),
]
OTHERS = ["import json.nowhere", "raise ModuleNotFoundError('mine')", "raise ModuleNotFoundError(name='a b')",
          "raise ModuleNotFoundError(name=7)", "raise OSError(111, 'refused')", "raise ConnectionError('mine')",
          "from json import nothing", "open('/etc/nowhere')", "open('../x')", "open(b'x')", "open('a\\nb')",
          "raise FileNotFoundError('mine')", "raise FileNotFoundError(2, 'mine', 7)", "open('x' * 200)", "import os; os.rmdir('a' * 101)",
          "open('x', 'x'); raise FileNotFoundError(2, 'it is there', 'x')"]


REACHED = ("glovebox: a sandbox reaches the hosts that its policy allows, often none: the denials of the result say which; "
           "data is sent along as files (run --file)\n")
NETWORK = [
    ("import urllib.request; urllib.request.urlopen('http://example.com/', timeout=2)", REACHED),
    ("import socket; socket.create_connection(('192.0.2.1', 80), 2)", REACHED),
    ("import pandas; pandas.read_csv('https://example.com/a.csv')", REACHED),
    ("import requests; requests.get('https://example.com/', timeout=2)", REACHED),
]


SENT = "a file of the caller's is sent along (run --file {})\n"
FILES = [
    ("open('data.csv')", "glovebox: /workspace has no data.csv; " + SENT.format("data.csv")),
    ("import pandas; pandas.read_csv('/workspace/a/../b.csv')", "glovebox: /workspace has no b.csv; " + SENT.format("b.csv")),
    ("import os; os.mkdir('sub'); os.chdir('sub'); open('x')", "glovebox: /workspace has no sub/x; " + SENT.format("sub/x")),
]


class TestHints:
    @pytest.mark.parametrize("code, hint", MODULES + FILES + NETWORK)
    def test_script(self, daemon, code, hint):
        _status, answer = daemon.call("POST", "/v1/runs", {"policy": "data", "code": code})
        assert answer["stderr"].endswith(hint), answer["stderr"]

    @pytest.mark.parametrize("code", OTHERS)
    def test_no_hint(self, daemon, code):
        _status, answer = daemon.call("POST", "/v1/runs", {"policy": "data", "code": code})
        assert "Error" in answer["stderr"] and "glovebox: " not in answer["stderr"]

    def test_caught_errors_are_as_ever(self, daemon):
        code = "try: import xgboost\nexcept ImportError as error: print(error, getattr(error, '__notes__', None))"
        _status, answer = daemon.call("POST", "/v1/runs", {"policy": "data", "code": code})
        assert answer["stdout"] == "No module named 'xgboost' None\n"

    def test_cells(self, daemon):
        session = daemon.session()
        try:
            for code, hint in MODULES + FILES[:2] + NETWORK:
                error = session.run(code)["error"]
                assert error["traceback"].endswith(hint) and hint.strip() not in error["value"]
        finally:
            session.end()

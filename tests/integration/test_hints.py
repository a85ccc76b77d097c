"""The notes on tracebacks of missing modules and files in a parked interpreter: the text that a model reads, through
every interface."""

import re

import pytest

MODULES = [
    ("import torch", "glovebox: this template has no torch; it has sklearn, numpy; its operator can add it: "
                     "glovebox libs request torch\n"),
    ("import fitz.utils", "glovebox: this template has no fitz; it has pdfplumber, pypdf; its operator can add it: "
                          "glovebox libs request pymupdf\n"),
    ("import no_such_module", "glovebox: this template has no no_such_module; its operator can add it: glovebox libs request "
                              "no_such_module; a file of your own is sent along (run --file no_such_module.py)\n"),
    ("import pandas; pandas.DataFrame({'a': [1]}).to_parquet('x', engine='fastparquet')",
     "glovebox: this template has no fastparquet; it has pyarrow, sqlite3, openpyxl, csv; its operator can add it: "
     "glovebox libs request fastparquet\n"),
    ("import geopandas", "glovebox: this template has no geopandas; it has shapely, plotly; its operator can add it: glovebox libs "
                         "request geopandas\n"),
    ("from google.colab import files", "glovebox: this template has no google; as for google.colab, files that were sent along lie in "
                                       "/workspace, and what is written there is handed out\n"),
]
OTHERS = ["import json.nowhere", "raise ModuleNotFoundError('mine')", "raise ModuleNotFoundError(name='a b')",
          "raise ModuleNotFoundError(name=7)", "raise OSError(111, 'refused')", "raise ConnectionError('mine')",
          "from json import nothing", "say = \"they won t'go\" +", "f = (1 +  # not t'x'", "open('/etc/nowhere')", "open('../x')", "open(b'x')", "open('a\\nb')",
          "raise FileNotFoundError('mine')", "raise FileNotFoundError(2, 'mine', 7)", "open('x' * 200)", "import os; os.rmdir('a' * 101)",
          "open('x', 'x'); raise FileNotFoundError(2, 'it is there', 'x')", "raise ValueError('pip install numpy')",
          "raise ValueError('pip install is not possible')",
          "raise ValueError('pip install beautifulsoup4')", "import os; open('a', 'x'); os.chmod('a', 0); open('/workspace/a')"]


REACHED = ("glovebox: a sandbox reaches the hosts that its policy allows, often none: the denials of the result say which; "
           "data is sent along as files (run --file; session cp)\n")
LISTENS = "need a policy with a loopback interface, such as server; others have none\n"
NETWORK = [
    ("import urllib.request; urllib.request.urlopen('http://example.com/', timeout=2)", REACHED),
    ("import socket; socket.create_connection(('192.0.2.1', 80), 2)", REACHED),
    ("import pandas; pandas.read_csv('https://example.com/a.csv')", REACHED),
    ("import requests; requests.get('https://example.com/', timeout=2)", REACHED),
    ("import http.server; http.server.HTTPServer(('127.0.0.1', 0), None)", LISTENS),
    ("import socket; socket.create_server(('127.0.0.1', 0))", LISTENS),
]


SENT = "a file of the caller's is sent along (run --file {})\n"
FILES = [
    ("open('data.csv')", "glovebox: /workspace has no data.csv; " + SENT.format("data.csv")),
    ("import pandas; pandas.read_csv('/workspace/a/../b.csv')", "glovebox: /workspace has no b.csv; " + SENT.format("b.csv")),
    ("import os; os.mkdir('sub'); os.chdir('sub'); open('x')", "glovebox: /workspace has no sub/x; " + SENT.format("sub/x")),
]


PLACE = "glovebox: write into /workspace, which is the working folder, or /tmp\n"
USAGE = ("there is no /sys; os.cpu_count() and limits hold here, and resource.getrusage() or psutil.Process() tell what this "
         "one uses\n")
SAID = [
    ("raise LookupError('Resource punkt_tab not found. Please use the NLTK Downloader')", "scikit-learn's text features, need no data\n"),
    ("raise ValueError('Image export needs it: pip install -U \"kaleido>=1\"')",
     "glovebox: this template has no kaleido; figures are shown as they are, and fig.write_html() writes them\n"),
    ("raise ImportError('try conda install -y astropy')", "its operator can add it: glovebox libs request astropy; a file of your "
     "own is sent along (run --file astropy.py)\n"),
    ("import ipywidgets", "widgets need a browser that answers: print(), display() and figures are shown\n"),
    ("import networkx; networkx.nx_agraph.graphviz_layout(networkx.path_graph(3))", "need no Graphviz\n"),
    ("import altair, pandas; altair.Chart(pandas.DataFrame({'x': [1]})).mark_bar().encode(x='x').save('a.png')",
     'chart.save("chart.html") writes them\n'),
    ("import pandas; pandas.DataFrame({'a': [1]}).to_clipboard()", "there is no clipboard here; print it, or write a file\n"),
    ("import duckdb; duckdb.sql('install httpfs')", "and files of Excel are read by pandas\n"),
    ("import polars; polars.DataFrame({'a': [1]}).write_excel('a.xlsx'); polars.read_excel('a.xlsx')",
     'polars reads files of Excel without it: pl.read_excel(file, engine="openpyxl")\n'),
    ("import tkinter", "there is no screen: figures and pictures are shown, or saved as files\n"),
    ("import cv2; cv2.imshow('a', cv2.UMat(2, 2, 0))", "or PIL.Image.fromarray(…) as the last line, is shown\n"),
    ("import matplotlib.pyplot as plt; plt.rcParams['text.usetex'] = True; plt.title('x'); plt.savefig('a.png')",
     "without text.usetex matplotlib draws $…$ itself\n"),
    ("import locale; locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')", "format numbers with f\"{n:,.2f}\"\n"),
    ("import matplotlib.pyplot as plt; plt.subplots()[1].grouped_bar({'a': [1, 2]})", "draw each group with ax.bar() and an offset\n"),
    ("from PIL import ImageFont; ImageFont.truetype('Papyrus.ttf')", "ImageFont.load_default(24) another\n"),
    ("open('/mnt/data/a.csv')", "glovebox: /mnt/data is not of this sandbox; files that were sent along lie in /workspace, the "
                                "working folder\n"),
    ("open('b.csv', 'x'); open('/home/person/b.csv')", "the working folder, and b.csv is there\n"),
    ("open('/proc/meminfo')", USAGE), ("import psutil; psutil.virtual_memory()", USAGE), ("import psutil; psutil.cpu_percent()", USAGE),
    ("open('/usr/x', 'w')", PLACE), ("import os; os.makedirs('/data/x')", PLACE),
]
NOTEBOOK = [  # what cells may and scripts may not
    ("import asyncio\nawait asyncio.sleep(0)", "write asyncio.run(main()), or run the code as a cell of a session, which may await\n"),
    ("print([i async for i in []])", "write asyncio.run(main()), or run the code as a cell of a session, which may await\n"),
    ("!pip install cowsay", "a script starts programs by subprocess.run()\n"),
    ("x = 1\n%matplotlib inline", "a script starts programs by subprocess.run()\n"),
    ("from IPython.display import display", "cells of a session have display() and IPython.display\n"),
]
NEWER = [  # than Debian 12's Python, 3.11
    ("from itertools import batched", "glovebox: itertools.batched came with Python 3.12, here is 3.11; "
                                      "write zip_longest(*[iter(items)] * n)\n"),
    ("import itertools; itertools.batched", "write zip_longest(*[iter(items)] * n)\n"),
    ("from typing import override", "here is 3.11; typing_extensions.override is here\n"),
    ("import pathlib; pathlib.Path().walk()", "glovebox: Path.walk came with Python 3.12, here is 3.11; write os.walk()\n"),
    ("(1.5).from_number(1)", "glovebox: float.from_number came with Python 3.14, here is 3.11\n"),
    ("raise PythonFinalizationError", "glovebox: PythonFinalizationError came with Python 3.13, here is 3.11\n"),
    ("from compression import zstd", "here is 3.11; write gzip, bz2, lzma and zlib as modules of their own\n"),
    ("import string.templatelib", "glovebox: string.templatelib came with Python 3.14, here is 3.11\n"),
    ("d = {'a': 1}\nprint(f'{d['a']}')", "write other quotes there, or a variable\n"),
    ("rows = [1]\nprint(f\"{\", \".join(map(str, rows))}\")", "write other quotes there, or a variable\n"),
    ("print(f'{chr(10).join([])}{\"\\n\"}')", "write other quotes there, or a variable\n"),
    ("type Row = dict[str, int]", "it has no type statement; write an assignment, Name = …\n"),
    ("def first[T](items: list[T]) -> T: ...", "use typing.TypeVar and Generic\n"),
    ("class Box[T]:\n    pass", "use typing.TypeVar and Generic\n"),
    ("name = 'a'\nprint(t'{name}')", "it has no t-strings; use an f-string\n"),
    ("try:\n    pass\nexcept ValueError, KeyError:\n    pass", "write except (A, B):\n"),
]


class TestHints:
    @pytest.mark.parametrize("code, hint", MODULES + FILES + NETWORK + SAID + NOTEBOOK + NEWER)
    def test_script(self, daemon, code, hint):
        _status, answer = daemon.call("POST", "/v1/runs", {"policy": "data", "code": code})
        assert answer["stderr"].endswith(hint), answer["stderr"]

    def test_template_without_packages(self, daemon):
        _status, answer = daemon.call("POST", "/v1/runs", {"policy": "minimal", "code": "import numpy"})
        assert answer["stderr"].splitlines()[-1].startswith(
            "glovebox: this template has no numpy; it has Python's own library alone: the template python has more, and "
            'template="this-environment" of the Python package what your program has'), answer["stderr"]

    @pytest.mark.parametrize("code", OTHERS)
    def test_no_hint(self, daemon, code):
        _status, answer = daemon.call("POST", "/v1/runs", {"policy": "data", "code": code})
        assert "Error" in answer["stderr"] and "glovebox: " not in answer["stderr"]

    def test_what_the_hint_for_polars_names_reads_the_file(self, daemon):
        code = ("import polars as pl\npl.DataFrame({'a': [1, 2]}).write_excel('a.xlsx')\n"
                "print(pl.read_excel('a.xlsx', engine='openpyxl')['a'].sum())")
        _status, answer = daemon.call("POST", "/v1/runs", {"policy": "data", "code": code})
        assert answer["stdout"] == "3\n", answer

    def test_caught_errors_are_as_ever(self, daemon):
        code = "try: import torch\nexcept ImportError as error: print(error, getattr(error, '__notes__', None))"
        _status, answer = daemon.call("POST", "/v1/runs", {"policy": "data", "code": code})
        assert answer["stdout"] == "No module named 'torch' None\n"

    def test_cells(self, daemon):
        session = daemon.session()
        try:
            for code, hint in MODULES + FILES[:2] + NETWORK + SAID[:3] + NEWER[::4]:
                error = session.run(code)["error"]
                hint = re.sub(r"(is sent along \(run --file .*)\)", r"\1; to a session: session cp, files.write())", hint)
                assert error["traceback"].endswith(hint) and hint.strip() not in error["value"]
        finally:
            session.end()

    def test_what_the_hint_names_tells_the_usage(self, daemon):
        code = "import psutil, resource\nprint(psutil.Process().memory_info().rss > 1 << 20, resource.getrusage(0).ru_maxrss > 1024)"
        _status, answer = daemon.call("POST", "/v1/runs", {"policy": "data", "code": code})
        assert answer["stdout"] == "True True\n", answer

"""Cells that a test runs in glovebox and in ipykernel, and the reasons for answers that differ.

Each row: a name, the cells that run one after another in a fresh interpreter (the last is compared), and, if
the answer is meant to be another one, the key of a reason in REASONS. `data` rows need numpy, pandas and
matplotlib. What is compared: status, value and displays by MIME type and text, stdout, stderr, name and text
of the error. Addresses, display ids and file names of cells are made equal before."""

import ast
import json
import re

REASONS = {
    "json": "a list, a dict or a subclass of them is also given as application/json, which programs can read without parsing Python's notation",
    "table": "a table is also given as numbers, bounded, with its full size (application/vnd.glovebox.table+json)",
    "svg": "a small figure also comes as SVG, and the size of its PNG is in metadata",
    "one figure": "a figure that is the value of its cell is shown once, not twice",
    "exit": "sys.exit() ends the cell with that exit status, as in a program; it is not an error, and the context stays",
    "pipe": "commands write to the cell's own stdout and stderr, not to a pseudo terminal that mixes them and "
            "writes \\r\\n",
    "magic": "wrong use of a magic is an error of the cell with name and text, not a line on stderr; it "
             "lists the magics that exist",
    "input": "the error says what to do instead",
    "status": "a value that cannot be shown fails its cell, instead of an error in a cell that succeeded",
    "markup": "the same element without the blanks around it",
    "all": "only the last value of a cell is its main result; values before it are displays",
    "incomplete": "the text is that of python3",
    "help": "help is a display of the cell: there is no pager",
    "clear": "displays are not removed again, since a client may have read them",
    "long": "a list is cut by the size of its text, not after 1000 items, so that programs can read it",
    "str": "an exception whose __str__ raises is reported under its own name",
    "loop": "the event loop runs only while a cell awaits: asyncio.run() works as in a program, create_task() needs "
            "an await",
    "pip": "a sandbox has no network: the answer says so and what to do",
    "repr html": "the failure of one format is printed on stderr; the value keeps its other formats, and the cell succeeds",
}

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

CELLS = [
    # --- values
    ("an expression", ["1 + 1"]),
    ("an assignment", ["x = 5"]),
    ("None", ["None"]),
    ("a semicolon", ["1 + 1;"]),
    ("a semicolon and a comment", ["1 + 1; # quiet"]),
    ("a text", ["'a\\'b'"]),
    ("a text of lines", ["'a\\nb'"]),
    ("bytes", ["b'a\\xff'"]),
    ("a float", ["0.1 + 0.2"]),
    ("a complex number", ["1j ** 2"]),
    ("a short list", ["[1, 'b', None]"], "json"),
    ("an empty list", ["[]"], "json"),
    ("a long list of numbers", ["list(range(40))"], "json"),
    ("a list of more than 1000", ["list(range(1200))"], "long"),
    ("lists in lists", ["[[i * 'x' for i in range(9)] for _ in range(5)]"], "json"),
    ("a list in itself", ["a = [1]; a.append(a); a"]),
    ("a tuple", ["(1,)"]),
    ("a tuple of tuples", ["tuple((i, str(i) * 9) for i in range(10))"]),
    ("a set", ["{3, 1, 2}"]),
    ("an empty set", ["set()"]),
    ("a frozenset", ["frozenset('cab')"]),
    ("a dict", ["{'b': 1, 'a': [1, 2]}"], "json"),
    ("a dict that needs lines", ["{f'key {i}': {'n': i, 'list': list(range(i * 4))} for i in range(6)}"], "json"),
    ("a dict with a number that JSON has not", ["{'a': float('nan')}"]),
    ("an OrderedDict", ["from collections import OrderedDict; OrderedDict(a=1)"], "json"),
    ("a Counter", ["from collections import Counter; Counter('abca')"], "json"),
    ("a defaultdict", ["from collections import defaultdict; d = defaultdict(list); d['x'].append(1); d"], "json"),
    ("a deque", ["from collections import deque; deque([1, 2], maxlen=3)"]),
    ("a named tuple", ["from collections import namedtuple; namedtuple('P', 'x y')(1, 2)"], "json"),
    ("a data class", ["from dataclasses import dataclass\n@dataclass\nclass D:\n    a: int\nD(1)"]),
    ("a namespace", ["from types import SimpleNamespace; SimpleNamespace(a=1, b='x')"]),
    ("a range", ["range(3)"]),
    ("a date", ["import datetime; datetime.date(2024, 1, 2)"]),
    ("a path", ["import pathlib; pathlib.PurePosixPath('/a/b')"]),
    ("a class", ["class C: pass\nC"]),
    ("a built-in class", ["int"]),
    ("an object", ["class C: pass\nC()"]),
    ("an object with a repr", ["class C:\n    def __repr__(self): return 'c!'\nC()"]),
    ("objects with a repr of lines", ["class C:\n    def __repr__(self): return 'c\\nd'\n[C(), C()]"]),
    ("a function", ["def f(a, *b, c=1): pass\nf"]),
    ("a lambda", ["lambda x: x"]),
    ("a built-in function", ["len"]),
    ("a method", ["class C:\n    def f(self): pass\nC.f"]),
    ("a module", ["import math; math"]),
    ("a generator", ["(i for i in 'a')"]),
    ("an exception as a value", ["ValueError('x', 1)"]),
    ("a subclass of list", ["class L(list): pass\nL([1])"], "json"),
    ("a subclass of dict with a repr", ["class D(dict):\n    def __repr__(self): return 'D!'\nD(a=1)"], "json"),
    ("_repr_pretty_", ["class C:\n    def _repr_pretty_(self, p, cycle): p.text('pretty')\nC()"]),
    ("the last value", ["6 * 7", "_ + 1"]),
    ("the three last values", ["1", "2", "3", "(_, __, ___)"]),
    ("a name _ of one's own", ["_ = 'mine'", "5", "_"]),
    ("Out", ["'a'", "Out[max(Out)]"]),
    ("names stay", ["x = 40", "x + 2"]),
    ("names stay after an error", ["x = 1\n1 / 0", "x"]),
    ("future imports stay", ["from __future__ import annotations", "def f(a: nowhere): return 1\nf(2)"]),
    # --- shown
    ("display", ["display(1, 'a')"]),
    ("display in a loop, then a value", ["for i in range(3): display(i)\n'end'"]),
    ("_repr_html_", ["class C:\n    def __repr__(self): return 'c'\n    def _repr_html_(self): return '<b>c</b>'\nC()"]),
    ("every _repr_*_", ["class C:\n    def __repr__(self): return 'c'\n"
                        "    def _repr_markdown_(self): return '*c*'\n    def _repr_latex_(self): return '$c$'\n"
                        "    def _repr_svg_(self): return '<svg/>'\n    def _repr_json_(self): return {'c': 1}\n"
                        "    def _repr_javascript_(self): return 'c()'\nC()"]),
    ("_repr_png_", [f"import base64\nclass C:\n    def __repr__(self): return 'c'\n"
                    f"    def _repr_png_(self): return base64.b64decode('{PIXEL}')\nC()"]),
    ("_repr_html_ with metadata", ["class C:\n    def __repr__(self): return 'c'\n"
                                   "    def _repr_html_(self): return '<b>', {'isolated': True}\nC()"]),
    ("_repr_mimebundle_", ["class C:\n    def __repr__(self): return 'c'\n"
                           "    def _repr_html_(self): return 'no'\n"
                           "    def _repr_mimebundle_(self, include=None, exclude=None): "
                           "return {'text/html': 'yes', 'text/x-own': 'own'}\nC()"]),
    ("_repr_mimebundle_ with metadata", ["class C:\n    def __repr__(self): return 'c'\n"
                                         "    def _repr_mimebundle_(self, **k): return {'a/b': 'c'}, {'a/b': {'d': 1}}\nC()"]),
    ("_ipython_display_", ["class C:\n    def _ipython_display_(self): print('itself')\nC()"]),
    ("_repr_html_ that raises", ["class C:\n    def __repr__(self): return 'c'\n"
                                 "    def _repr_html_(self): 1 / 0\nC()"], "repr html"),
    ("_repr_html_ that is not there", ["class C:\n    def __repr__(self): return 'c'\n"
                                       "    def _repr_html_(self): raise NotImplementedError\nC()"]),
    ("__repr__ that raises", ["class C:\n    def __repr__(self): 1 / 0\nC()"], "status"),
    ("an object with every name", ["class C:\n    def __repr__(self): return 'any'\n"
                                   "    def __getattr__(self, name): return lambda *a, **k: name\nC()"]),
    ("display of a class", ["class C:\n    def _repr_html_(self): return 'x'\ndisplay(C)"]),
    ("display with include", ["class C:\n    def __repr__(self): return 'c'\n    def _repr_html_(self): return '<b>'\n"
                              "    def _repr_svg_(self): return '<svg/>'\ndisplay(C(), include=['text/plain', 'text/html'])"]),
    ("display with exclude", ["class C:\n    def __repr__(self): return 'c'\n    def _repr_html_(self): return '<b>'\n"
                              "display(C(), exclude=['text/html'])"]),
    ("display of a bundle", ["display({'text/plain': 'p', 'text/html': 'h'}, raw=True)"]),
    ("display with an id", ["h = display('a', display_id='one')\nh.update('b')"]),
    ("update_display", ["from IPython.display import display, update_display\n"
                        "display(1, display_id='x')\nupdate_display(2, display_id='x')"]),
    ("clear_output", ["from IPython.display import clear_output\nprint('a')\nclear_output()\nprint('b')"], "clear"),
    ("HTML", ["from IPython.display import HTML\nHTML('<i>x</i>')"]),
    ("Markdown", ["from IPython.display import Markdown\nMarkdown('# x')"]),
    ("Latex and Math", ["from IPython.display import Latex, Math\ndisplay(Latex('$a$'), Math('b'))"]),
    ("SVG", ["from IPython.display import SVG\nSVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')"]),
    ("JSON", ["from IPython.display import JSON\nJSON({'a': [1]})"]),
    ("Javascript", ["from IPython.display import Javascript\nJavascript('f()')"]),
    ("Image", [f"from IPython.display import Image\nimport base64\nImage(base64.b64decode('{PIXEL}'), width=9)"]),
    ("IFrame", ["from IPython.display import IFrame\nIFrame('https://example.org', 10, 20)"], "markup"),
    ("Code", ["from IPython.display import Pretty\nPretty('as it is')"]),
    ("%%html", ["%%html\n<p>x</p>\n"]),
    ("%%markdown", ["%%markdown\n*x*\n"]),
    ("all expressions are shown", ["from IPython.core.interactiveshell import InteractiveShell\n"
                                   "InteractiveShell.ast_node_interactivity = 'all'", "1\n2\n3"], "all"),
    # --- streams
    ("print", ["print('a'); print('b', end='')"]),
    ("both streams", ["import sys\nprint('out'); print('err', file=sys.stderr)"]),
    ("print and a value", ["print('p')\n5"]),
    ("a write without a line", ["import sys\nsys.stdout.write('x');"]),
    ("not ASCII", ["print('äöü €')"]),
    ("many lines", ["for i in range(500): print(i)"]),
    ("a thread prints", ["import threading\nt = threading.Thread(target=print, args=('from a thread',))\n"
                         "t.start(); t.join()"]),
    ("a warning", ["import warnings\nwarnings.warn('careful')"]),
    ("logging", ["import logging\nlogging.warning('w')"]),
    ("redirected", ["import contextlib, io\nf = io.StringIO()\nwith contextlib.redirect_stdout(f): print('in')\n"
                    "f.getvalue()"]),
    ("%%bash", ["%%bash\necho one\necho two\n"]),
    ("!command", ["!echo a && echo b"], "pipe"),
    ("!command with a variable", ["word = 'w'", "!echo $word {word.upper()}"], "pipe"),
    ("x = !command", ["x = !printf 'a\\nb'\nx"], "json"),
    ("a % that is Python's", ["a = (7\n % 4)\na, '%d' % 3"]),
    ("a ! that is a text's", ["'''\n!ls\n'''"]),
    # --- magics
    ("%time", ["%time 1 + 1"]),
    ("%%time", ["%%time\nx = 3\nprint(x)"]),
    ("%timeit", ["%timeit -n 2 -r 2 1 + 1"]),
    ("%env", ["%env GLB_TRY=1", "import os; os.environ['GLB_TRY']"]),
    ("%cd", ["%cd /tmp", "import os; os.getcwd()"]),
    ("%cd says where", ["%cd /tmp"]),
    ("%matplotlib inline", ["%matplotlib inline"], None, "data"),
    ("%%writefile", ["import os; os.chdir('/tmp')",
                     "%%writefile glb_try.txt\nkept\n", "open('glb_try.txt').read(), os.remove('glb_try.txt')"]),
    ("%%capture", ["%%capture c\nprint('a')", "c.stdout"]),
    ("an unknown magic", ["%nothing_like_this"], "magic"),
    ("an unknown cell magic", ["%%nothing_like_this\n1"], "magic"),
    ("%pip install", ["%pip --version > /dev/null"], "pip"),
    ("object?", ["len?"], "help"),
    # --- errors
    ("division by zero", ["1 / 0"]),
    ("a value before the error is not shown", ["5\n1 / 0"]),
    ("displays before the error stay", ["display(1)\nprint('p')\n1 / 0"]),
    ("an error in a function", ["def f(a):\n    return a.b\n\nf(1)"]),
    ("an error of one's own", ["class Mine(Exception): pass\nraise Mine('text', 2)"]),
    ("an error without text", ["raise ValueError"]),
    ("a KeyError", ["{}['k']"]),
    ("a wrong syntax", ["x = = 1"]),
    ("a bracket that is never closed", ["f(1,"], "incomplete"),
    ("a wrong indentation", ["if True:\nx = 1"]),
    ("a wrong escape of unicode", ["'\\N{no such name}'"]),
    ("a missing module", ["import no_such_module_anywhere"]),
    ("a name that is not", ["undefined_name"]),
    ("a chain", ["try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('then') from e"]),
    ("an assertion", ["assert 1 == 2, 'no'"]),
    ("a recursion", ["def f(): f()\nf()"]),
    ("a group", ["raise ExceptionGroup('many', [ValueError(1), TypeError(2)])"]),
    ("__str__ that raises", ["class E(Exception):\n    def __str__(self): return 1 / 0\nraise E()"], "str"),
    ("sys.exit", ["import sys\nsys.exit(3)"], "exit"),
    ("KeyboardInterrupt", ["raise KeyboardInterrupt"]),
    ("StopIteration", ["next(iter([]))"]),
    ("input()", ["input('name? ')"], "input"),
    # --- awaits
    ("await", ["import asyncio\nawait asyncio.sleep(0, 'slept')"]),
    ("async for", ["async def g():\n    yield 1\n    yield 2\nasync for i in g(): print(i)"]),
    ("async with", ["import contextlib\n@contextlib.asynccontextmanager\nasync def c():\n    yield 'in'\n"
                    "async with c() as x: print(x)"]),
    ("a comprehension that awaits", ["import asyncio\n[await asyncio.sleep(0, i) for i in range(3)]"], "json"),
    ("gather", ["import asyncio\nasync def f(i):\n    await asyncio.sleep(0.01); return i\n"
                "await asyncio.gather(*map(f, range(3)))"], "json"),
    ("an error in an await", ["async def f(): 1 / 0\nawait f()"]),
    ("a task over two cells", ["import asyncio\nasync def f(): return 'done'\nawait asyncio.sleep(0)\n"
                               "t = asyncio.ensure_future(f(), loop=asyncio.get_event_loop())", "await t"]),
    ("a coroutine that is not awaited", ["async def f(): pass\nc = f(); c.close()"]),
    ("asyncio.run", ["import asyncio\nasync def f(): return 5\nasyncio.run(f())"], "loop"),
    # --- interrupts: SIGINT comes 0.3 s after the last cell has begun
    ("an interrupted sleep", ["import time", "print('begun')\ntime.sleep(20)"], None, "interrupt"),
    ("an interrupted loop", ["while True: pass"], None, "interrupt"),
    # ipykernel heeds it when its loop wakes next, which is when the sleep is over.
    ("an interrupted await", ["import asyncio", "await asyncio.sleep(3)"], "loop", "interrupt"),
    ("an interrupt that is caught", ["import time\ntry: time.sleep(20)\nexcept KeyboardInterrupt: print('caught')"],
     None, "interrupt"),
    # --- data
    ("an array", ["import numpy as np; np.arange(6).reshape(2, 3)"], None, "data"),
    ("arrays in a list", ["import numpy as np; [np.zeros((2, 2)), np.ones(2)]"], None, "data"),
    ("a number of numpy", ["import numpy as np; np.float64(0.5)"], None, "data"),
    ("a DataFrame", ["import pandas as pd; pd.DataFrame({'a': [1, 2], 'b': ['x', None]})"], "table", "data"),
    ("a long DataFrame", ["import pandas as pd; pd.DataFrame({'a': range(100)})"], "table", "data"),
    ("an empty DataFrame", ["import pandas as pd; pd.DataFrame()"], "table", "data"),
    ("display of a DataFrame", ["import pandas as pd; display(pd.DataFrame({'a': [1]}))"], "table", "data"),
    ("a Series", ["import pandas as pd; pd.Series([1.5, 2], name='s')"], "table", "data"),
    ("an Index", ["import pandas as pd; pd.Index(['a', 'b'])"], None, "data"),
    ("a figure that is left open", ["%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);"],
     "svg", "data"),
    ("plt.show()", ["%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint('after')"],
     "svg", "data"),
    ("two figures", ["%matplotlib inline\nimport matplotlib.pyplot as plt\nfor i in range(2):\n"
                     "    plt.figure(); plt.plot([i])\nprint('before')"], "svg", "data"),
    ("a figure as value", ["%matplotlib inline\nimport matplotlib.pyplot as plt\nf, a = plt.subplots()\n"
                           "a.plot([1, 2])\nf"], "one figure", "data"),
    ("a closed figure", ["%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1]); plt.close()"], None, "data"),
    ("a figure before an error", ["%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1])\n1 / 0"],
     "svg", "data"),
    ("a picture of Pillow", ["from PIL import Image; Image.new('RGB', (2, 2))"], None, "data"),
]


def rows():
    """(name, cells, key of a reason or None, kind: none, "data" or "interrupt")"""
    for name, codes, *rest in CELLS:
        yield (name, codes, rest[0] if rest else None, *rest[1:])


def normal(text):
    """Makes equal what is another each time."""
    text = re.sub(r"\b0x[0-9a-f]+\b", "0x", text)
    text = re.sub(r"\((?:\d+\.py|<cell \d+>), line", "(CELL, line", text)
    text = re.sub(r"/tmp/ipykernel_\d+/\d+\.py|<cell \d+>", "CELL", text)
    return re.sub(r"\b\d+(\.\d+)?(e[+-]?\d+)? (ns|µs|us|ms|s)\b", "TIME", text)


def normal_data(data):
    """Pictures by their kind only: versions of libraries draw them a pixel apart."""
    return {kind: "PICTURE" if kind in ("image/png", "image/jpeg") else
            normal(value) if isinstance(value, str) else value for kind, value in data.items()}


# What still holds where a reason is given.

def without(kinds):
    """The same answer but for more MIME types."""
    def check(ours, theirs):
        for result in ours["results"]:
            for kind in kinds:
                result["data"].pop(kind, None)
            result.pop("metadata", None)
        for result in theirs["results"]:
            result.pop("metadata", None)
        assert ours == theirs

    return check


def told_plainly(ours, theirs):
    """Our answer without the application/json that theirs has not: it says what the text says, and nothing else."""
    for result, other in zip(ours["results"], theirs["results"]):
        if "application/json" in result["data"] and "application/json" not in other["data"]:
            # numpy 2 names the type of a single number: np.float64(0.5)
            value = ast.literal_eval(re.sub(r"^np\.\w+\((.*)\)$", r"\1", result["data"]["text/plain"]))
            assert json.dumps(result["data"].pop("application/json")) == json.dumps(value)
    return ours


def same_error(ours, theirs):
    assert ours["status"] == theirs["status"] == "error" and ours["error"]["name"] == theirs["error"]["name"]


def same_text(ours, theirs):
    assert ours["stdout"] == theirs["stdout"].replace("\r\n", "\n") and ours["status"] == theirs["status"]


CHECKS = {
    "json": without(["application/json"]),
    "table": without(["application/vnd.glovebox.table+json"]),
    "svg": without(["image/svg+xml"]),
    "pipe": same_text,
    "input": same_error,
}

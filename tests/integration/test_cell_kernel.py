"""The kernel that runs cells, alone: what it shows, what it says of errors, and what happens to a cell that
breaks it. No daemon; a stand-in for init (zygote_rig)."""

import base64
import os
import struct
import threading

import pytest

TABLE = "application/vnd.glovebox.table+json"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="maps a block of ids, as root")


@pytest.fixture
def cell(light):
    yield from cells_of(light)


@pytest.fixture
def data_cell(data):
    yield from cells_of(data)


def cells_of(rig):
    one = rig.fork()
    assert one.os_error == 0, one.failure
    folders = ["/workspace"]

    def run(code, **options):
        return one.execute(code, mode="CELL", stdin=None, folder=folders.pop() if folders else "", **options)

    run.interpreter = one
    yield run
    one.close()


def text_of(outcome):
    return [result["data"].get("text/plain") for result in outcome["results"]]


# --- values ---------------------------------------------------------------------------------------

def test_the_value_comes_with_the_end_after_earlier_output(cell):
    assert text_of(cell("6 * 7")) == ["42"]
    assert text_of(cell("display(1)\n2")) == ["1", "2"]
    assert [len(text) for text in text_of(cell("'x' * 500")) + text_of(cell("'x' * 5000"))] == [502, 5002]
    loud = cell("class Loud:\n    def __repr__(self):\n        print('before', end='')\n        return 'Loud'\nLoud()")
    assert (text_of(loud), loud["stdout"]) == (["Loud"], b"before")
    failed = cell("import os\nif os.fork() == 0: os._exit(0)\nos.wait()\n1 / 0")
    assert failed["results"] == [] and failed["error"]["name"] == "ZeroDivisionError"
    assert text_of(cell("'and goes on'")) == ["'and goes on'"]


@pytest.mark.parametrize("code", [
    "import io, os, sys\nclass Out(io.TextIOBase):\n    def write(self, text): return len(text)\n"
    "    def flush(self): os._exit(3)\nsys.stdout = Out()\n40 + 2",
    "import io, os, sys\nclass Err(io.TextIOWrapper):\n    def flush(self): os._exit(3)\n"
    "sys.stderr = Err(io.FileIO(2, closefd=False))\n40 + 2"])
def test_a_value_is_reported_before_the_programs_own_stream_is_flushed(cell, code):
    ended = cell(code)
    assert text_of(ended) == ["42"] and ended["executed"] is None


def test_a_value_is_reported_before_an_open_figure_is_drawn(data_cell):
    ended = data_cell("import os, matplotlib.pyplot as plt\nfigure = plt.figure()\nplt.plot([1, 2])\n"
                      "figure.savefig = figure.draw = lambda *a, **o: os._exit(3)\n"
                      "figure.canvas.draw = figure.canvas.print_figure = figure.savefig\n40 + 2")
    assert text_of(ended)[0] == "42" and ended["executed"] is None


# --- errors ---------------------------------------------------------------------------------------

def test_frames_of_the_kernel_are_never_shown(cell):
    for code in ("1 / 0", "display(type('C', (), {'__repr__': lambda s: 1 / 0})())", "!ls {nowhere\n%nothing", "await 5",
                 "import IPython.display as d\nd.Image('x', format='no')", "%time 1 / 0", "x = = 1",
                 "class C:\n  def __repr__(self): 1/0\nC()", "def f(): f()\nf()"):
        error = cell(code)["error"]
        assert error and "_glovebox" not in error["traceback"], error["traceback"]
        assert all("_glovebox" not in frame["file"] for frame in error["frames"])
        assert "\x1b" not in error["traceback"]


def test_a_chain_is_reported_as_data(cell):
    error = cell("def g(): {}['k']\ntry:\n    g()\nexcept KeyError as e:\n    raise ValueError('then') from e")["error"]
    assert [(cause["name"], cause["how"]) for cause in error["causes"]] == [("KeyError", "cause")]
    assert [frame["code"] for frame in error["causes"][0]["frames"]] == ["g()", "def g(): {}['k']"]
    assert "The above exception was the direct cause" in error["traceback"]
    error = cell("try:\n    1 / 0\nexcept ZeroDivisionError:\n    undefined")["error"]
    assert [(cause["name"], cause["how"]) for cause in error["causes"]] == [("ZeroDivisionError", "context")]


def test_an_exception_group_is_reported_as_data(cell):
    error = cell("raise ExceptionGroup('many', [ValueError(1), ExceptionGroup('in', [TypeError(2)])])")["error"]
    if error["name"] == "NameError":
        pytest.skip("no groups before Python 3.11")
    assert [(one["name"], one["value"]) for one in error["exceptions"]][0] == ("ValueError", "1")
    assert error["exceptions"][1]["exceptions"][0]["name"] == "TypeError"


@pytest.mark.parametrize("code, name", [
    ("class E(Exception):\n  def __str__(self): raise KeyError\nraise E", "E"),
    ("class E(Exception):\n  def __str__(self): return 5\nraise E", "E"),
    ("class M(type):\n  def __getattribute__(s, n): 1 / 0\nclass E(Exception, metaclass=M): pass\nraise E", "E"),
    ("class E(Exception):\n  def __getattribute__(self, n): 1 / 0\nraise E", "E"),
    ("class S(str):\n  def __str__(self): 1 / 0\n  __repr__ = __len__ = __str__\nraise ValueError(S('x'))", "ValueError"),
    ("e = ValueError(1)\ne.__cause__ = e\nraise e", "ValueError"),
    ("a, b = ValueError(1), KeyError(2)\na.__context__, b.__context__ = b, a\nraise a", "ValueError"),
    ("raise SyntaxError('x', (5, 'a', {}, []))", "SyntaxError"),
    ("raise ValueError('x' * (20 << 20))", "ValueError"),
    ("import sys\nsys.setrecursionlimit(50000)\ndef f(n): return n and f(n - 1) or 1 / 0\nf(9000)", "ZeroDivisionError"),
])
def test_hostile_exceptions_are_reported(cell, code, name):
    outcome = cell(code)
    assert outcome["error"]["name"] == name and outcome["executed"]["code"] == 1
    assert len(outcome["error"]["traceback"]) < 2 << 20
    assert text_of(cell("'alive'")) == ["'alive'"]


# --- what a cell breaks -----------------------------------------------------------------------------

BREAKS = [
    # code, whether the next cell still runs
    ("import builtins\nfor n in ('print', 'len', 'isinstance', 'open', 'str', 'type', 'getattr', 'compile', 'eval'):\n"
     "  setattr(builtins, n, None)", None),
    ("import builtins\nbuiltins.__import__ = None", True),
    ("import sys\nsys.modules.clear()", True),
    ("import sys\nfor n in list(sys.modules):\n  if 'glovebox' in n: del sys.modules[n]", True),
    ("import sys\nsys.stdout.close(); sys.stderr.close()", True),
    ("import sys\ndel sys.stdout, sys.stderr, sys.__stdout__", True),
    ("import sys\nsys.stdout = None", True),
    ("import os\nos.close(1); os.close(2)", True),
    ("import os\nos.write = os.getpid = os.fstat = os.read = None", True),
    ("import gc\ngc.disable(); gc.set_threshold(1); gc.unfreeze(); gc.collect()", True),
    ("import sys\nsys.meta_path.clear(); sys.path.clear(); sys.path_hooks.clear()", True),
    ("import json, ast, linecache, traceback\njson.dumps = ast.parse = traceback.TracebackException = None\n"
     "linecache.cache = None", None),
    ("import sys\nfor n, m in list(sys.modules.items()):\n  if 'glovebox' in n: m.__dict__.clear()", False),
    ("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nsignal.pthread_sigmask(signal.SIG_BLOCK, [2, 15])", True),
    ("import sys\nsys.settrace(lambda *a: 1 / 0)", None),
    ("import sys\nsys.excepthook = sys.displayhook = None", True),
    ("globals().clear()", True),
    ("import os\nfor n in os.listdir('/proc/self/fd'):\n  try: os.set_blocking(int(n), False)\n  except OSError: pass\n"
     "for _ in range(40): display('y' * 300000)", True),
    ("__builtins__ = {}", True),
    ("import sys\nsys.setrecursionlimit(60)", None),
    ("import threading\nthreading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()", True),
]


@pytest.mark.parametrize("code, lives", BREAKS, ids=range(len(BREAKS)))
def test_a_cell_that_breaks_its_interpreter_has_a_defined_end(cell, code, lives):
    outcome = cell(code)
    assert outcome["executed"] is not None
    if outcome["executed"]["ends"]:
        assert lives is not True, outcome
        cell.interpreter.wait()
        return
    after = cell("6 * 7")
    assert after["executed"] is not None
    if lives:
        assert text_of(after) == ["42"], after


@pytest.mark.parametrize("code, end", [
    ("import os\nprint('last', end='')\nos._exit(7)", (7, 0)),
    ("import os\nprint('last', end='')\nos.kill(os.getpid(), 9)", (None, 9)),
    ("import ctypes\nprint('last', end='')\nctypes.string_at(0)", (None, 11)),
    ("import os\nprint('last', end='')\nos.closerange(3, 2000)\n", None),
])
def test_a_sudden_end_keeps_what_was_printed_and_shown(cell, code, end):
    outcome = cell("display('first')\n" + code)
    assert outcome["stdout"] == b"last" and text_of(outcome) == ["'first'"]
    if end is not None:
        assert outcome["executed"] is None and cell.interpreter.wait() == end
    else:
        assert outcome["executed"] is None and cell.interpreter.wait()[0] in (0, 1)


def test_a_child_of_a_cell_never_speaks_for_it(cell):
    outcome = cell("import os\np = os.fork()\nif p == 0:\n    display('child'); print('c'); raise SystemExit(3)\n"
                   "os.waitstatus_to_exitcode(os.waitpid(p, 0)[1])")
    assert text_of(outcome) == ["3"] and outcome["stdout"] == b"c\n" and outcome["executed"]["count"] == 1
    outcome = cell("if os.fork() == 0:\n    1 / 0\nos.wait()[1] >> 8")
    assert text_of(outcome) == ["1"] and outcome["error"] is None


# --- streams ----------------------------------------------------------------------------------------

def test_every_way_to_print_is_captured_in_order(cell):
    code = ("import os, subprocess, threading, ctypes, multiprocessing, asyncio, sys\n"
            "print(1)\nos.write(1, b'2\\n')\nsubprocess.run(['echo', '3'])\n"
            "t = threading.Thread(target=print, args=(4,)); t.start(); t.join()\n"
            "ctypes.CDLL(None).puts(b'5'); ctypes.CDLL(None).fflush(None)\n"
            "p = multiprocessing.get_context('fork').Process(target=print, args=(6,)); p.start(); p.join()\n"
            "async def f(): print(7)\nawait f()\nsys.stdout.buffer.write(b'8\\n'); sys.__stdout__.write('9\\n')\n"
            "!echo 10\n%system echo 11")
    outcome = cell(code)
    assert outcome["stdout"].split() == [str(i).encode() for i in range(1, 11)], outcome
    assert text_of(outcome) == ["['11']"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_finds_functions_of_a_file(cell, method):
    cell("%%writefile work.py\ndef f(x): return x * x")
    outcome = cell("import multiprocessing, sys\nsys.path.insert(0, '')\nfrom work import f\n"
                   f"with multiprocessing.get_context('{method}').Pool(2) as pool: print(pool.map_async(f, range(4)).get(timeout=20))")
    assert outcome["stdout"] == b"[0, 1, 4, 9]\n", outcome


def test_a_pool_of_forked_processes_finds_functions_of_a_cell(cell):
    outcome = cell("import multiprocessing\ndef f(x): return x * x\n"
                   "with multiprocessing.Pool(2) as pool: print(pool.map_async(f, range(4)).get(timeout=20))")
    assert outcome["stdout"] == b"[0, 1, 4, 9]\n", outcome


def test_threads_that_show_do_not_mix_their_results(cell):
    outcome = cell("import threading\nbig = 'y' * 200000\n"
                   "ts = [threading.Thread(target=lambda i=i: [display(str(i) + big) for _ in range(5)]) for i in range(8)]\n"
                   "for t in ts: t.start()\nfor t in ts: t.join()\n'end'")
    texts = text_of(outcome)
    assert len(texts) == 41 and texts[-1] == "'end'" and all(len(text) == 200003 for text in texts[:-1])


# --- state and interrupts ---------------------------------------------------------------------------

def interrupt_later(cell, after=0.3):
    threading.Timer(after, os.kill, (cell.interpreter.host_pid(), 2)).start()


@pytest.mark.parametrize("code", [
    "import time\nkept = 5\nprint('x', flush=True)\ntime.sleep(30)", "kept = 5\nwhile True: pass",
    "kept = 5\nimport asyncio\nawait asyncio.sleep(30)", "kept = 5\n!sleep 30", "kept = 5\nx = !sleep 30",
    "%%capture\nimport time\nglobal kept\nkept = 5\ntime.sleep(30)", "kept = 5\nwhile True: display('y' * 300000)",
])
def test_an_interrupted_cell_leaves_its_names(cell, code):
    interrupt_later(cell)
    outcome = cell(code)
    assert outcome["error"]["name"] == "KeyboardInterrupt" and outcome["executed"]["code"] == 1
    assert text_of(cell("kept")) == ["5"]
    assert text_of(cell("import asyncio\nawait asyncio.sleep(0, 'fine')")) == ["'fine'"]


def test_exit_codes_of_cells(cell):
    assert cell("import sys\nx = 1\nsys.exit(3)")["executed"] == {"code": 3, "signal": 0, "ends": 0, "count": 1}
    assert cell("quit()")["executed"]["code"] == 0
    assert text_of(cell("x")) == ["1"]


# --- magics -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("code, stdout", [
    ("%cd /tmp\n%pwd", "/tmp\n"), ("%env A=1\n!echo $$A", "env: A=1\n1\n"), ("!cat", ""),
    ("if True:\n    !echo in\nfor i in range(2):\n    !echo {i} $i", "in\n0 0\n1 1\n"),
    ("!echo a \\\n  b", "a b\n"), ("x = '''\n%time\n!ls\n'''\nprint(len(x))", "11\n"),
    ("print('50 %' % ()\n if 0 else 'ok')", "ok\n"), ("d = {'a':\n  !x}" if False else "print(1 !=\n 2)", "True\n"),
    ("%%writefile m.py\ny = 7\n", "Writing m.py\n"), ("%timeit -n 1 -r 1 pass", None), ("%matplotlib inline", ""),
    ("%load_ext autoreload\n%autoreload 2", ""), ("%%script bash\necho s\n", "s\n"),
])
def test_magics(cell, code, stdout):
    outcome = cell(code)
    assert outcome["error"] is None, outcome["error"]["traceback"]
    assert stdout is None or outcome["stdout"].decode() == stdout


def test_lines_keep_their_numbers(cell):
    error = cell("!true\nx = !echo\n\n%env B=2\n1 / 0")["error"]
    assert error["frames"] == [{"file": "<cell 1>", "line": 5, "function": "<module>", "code": "1 / 0"}]


def test_what_pip_lists_goes_through_a_pipe(cell):
    cell("import os, sys, tempfile\nsys.path.append(tempfile.mkdtemp())\nfor name in ('greet', 'leave'):\n"
         "    place = f'{sys.path[-1]}/{name}-1.dist-info'; os.mkdir(place)\n"
         "    open(place + '/METADATA', 'w').write(f'Metadata-Version: 2.1\\nName: {name}\\nVersion: 1\\n')")
    whole = cell("!pip list")["stdout"].decode().splitlines()
    assert {"greet==1", "leave==1"} <= set(whole)
    assert cell("!pip list | grep greet | cat")["stdout"] == b"greet==1\n"
    assert cell("!python3 -m pip freeze|wc -l")["stdout"].decode().strip() == str(len(whole))


@pytest.mark.parametrize("code, name, says", [
    ("%foo", "UsageError", "`%foo` not found"), ("%%foo\n1", "UsageError", "`%%foo` not found"),
    ("x = 1\n%%bash\nls", "UsageError", "first line"), ("%pip install requests", "UsageError", "no network"),
    ("!pip install requests", "UsageError", "no network"), ("!python3 -m pip install a b", "UsageError", "Missing: a, b"),
    ("%env nowhere", "UsageError", "nowhere"), ("%%bash\nexit 3\n", "CalledProcessError", "3"),
    ("input('?')", "StdinNotImplementedError", "stdin"), ("%cd /nowhere", "FileNotFoundError", "/nowhere"),
])
def test_what_does_not_work_says_why(cell, code, name, says):
    os.close(cell.interpreter.stdin)
    cell.interpreter.stdin = -1
    error = cell(code)["error"]
    assert error["name"] == name and says in error["value"], error


def test_the_shell_is_there_for_libraries(cell):
    assert text_of(cell("from IPython import get_ipython\nimport IPython.core.display, matplotlib_inline.backend_inline\n"
                        "get_ipython().events.register('post_execute', print)\nget_ipython().run_line_magic('pwd', '')")) \
        == ["'/workspace'"]
    outcome = cell("get_ipython().config.InlineBackend.rc = {}\nlen?")
    assert "Docstring: Return the number of items" in text_of(outcome)[0]
    # duckdb makes a dict of the configuration when it is imported, and looks for what a notebook server sets
    assert text_of(cell("get_ipython().config.InlineBackend.figure_format = 'svg'\n"
                        "dict(get_ipython().config), 'IPKernelApp' in get_ipython().config")) \
        == ["({'InlineBackend': {'rc': {}, 'figure_format': 'svg'}}, False)"]
    assert text_of(cell("import asyncio, nest_asyncio\nnest_asyncio.apply()\nasyncio.run(asyncio.sleep(0, 5))")) == ["5"]


def test_display_classes_of_files_progress_and_video(cell):
    assert text_of(cell("import os\nos.mkdir('sub'); open('sub/a', 'x'); open('b', 'x')\n"
                        "from IPython.display import FileLinks, ProgressBar, YouTubeVideo\nFileLinks('.')")) == ["b\nsub/a"]
    outcome = cell("for step in ProgressBar(2): pass")
    assert [text.split()[-1] for text in text_of(outcome)] == ["0/2", "2/2"], outcome
    assert cell("print(YouTubeVideo('x')._repr_html_())")["stdout"].startswith(b'<iframe width="400" height="300" '
                                                                              b'src="https://www.youtube.com/embed/x"')


def test_import_of_other_parts_of_IPython_gets_a_hint(cell):
    assert cell("import IPython.core.magic")["error"]["traceback"].endswith(
        "glovebox: IPython itself is not here; IPython.display, get_ipython() and the common magics are\n")


def test_captured_output_can_be_shown_again(cell):
    assert cell("from IPython.utils.capture import capture_output\nwith capture_output(stderr=False) as caught:\n    print('in')\n"
                "print('was', caught.stdout)")["stdout"] == b"was in\n\n"
    cell("%%capture caught\nimport sys\nprint('out')\nprint('err', file=sys.stderr)\n5")
    assert text_of(cell("str(caught), caught.stderr, caught.outputs")) == [repr(("out\n", "err\n", []))]
    assert cell("caught.show()\ncaught()")["stdout"] == b"out\nout\n"


def test_a_script_has_no_notebook_features(light):
    one = light.fork()
    outcome = one.execute("try:\n  import IPython\nexcept ImportError: print('none')\n"
                          "import builtins; print(hasattr(builtins, 'display'), hasattr(builtins, 'get_ipython'), input())",
                          stdin=b"line\n")
    assert outcome["stdout"] == b"none\nFalse False line\n", outcome
    one.close()


def test_input_reads_stdin_of_the_run(light):
    one = light.fork()
    assert text_of(one.execute("input()", mode="CELL", stdin=b"given\n")) == ["'given'"]
    one.close()


# --- rich values --------------------------------------------------------------------------------------

def test_values_are_bounded(cell):
    outcome = cell("'x' * (5 << 20)")
    assert len(text_of(outcome)[0]) < (1 << 20) + 100 and "characters are left out" in text_of(outcome)[0]
    outcome = cell("x = []\nfor _ in range(5000): x = [x]\nx")
    assert outcome["executed"] is not None
    outcome = cell("class C:\n  def _repr_png_(self): return bytes(20 << 20)\n  def __repr__(self): return 'c'\nC()")
    assert outcome["results"][0]["data"] == {"text/plain": "c"}


def test_json_that_gloveboxd_would_refuse_is_left_out_and_the_text_is_shown(cell):
    nested = "x = 1\nfor _ in range({}): x = [x]\nx"
    for code, has_json in ((nested.format(25), True), (nested.format(26), False), ("list(range(79990))", True),
                           ("list(range(80000))", False), ("{'a': [[0] * 300] * 300}", False)):
        data = cell(code)["results"][0]["data"]
        assert ("application/json" in data, "text/plain" in data) == (has_json, True), code
    first, second, third = cell("display([0] * 60000)\ndisplay([0] * 60000)\ndisplay([0] * 10000)")["results"]
    assert ["application/json" in one["data"] for one in (first, second, third)] == [True, False, True]
    assert "application/json" in cell("[0] * 60000")["results"][0]["data"], "each cell has room of its own"
    outcome = cell("display({'text/plain': 'x'}, metadata={'text/plain': [[0] * 300] * 300}, raw=True)")
    assert outcome["results"][0] == {"data": {"text/plain": "x"}, "main": False}
    only = cell("display({'application/json': [0] * 120000}, raw=True)")["results"][0]["data"]
    assert len(only["application/json"]) == 120000, "gloveboxd reports what is left out"


def test_plotly_figures_are_reported_as_json(cell):
    outcome = cell("class Figure:\n  def to_json(self): return '{\"data\": [1], \"layout\": {}}'\n"
                   "  def __repr__(self): return 'Figure()'\nFigure.__module__ = 'plotly.graph_objs._figure'\nFigure()")
    assert outcome["results"][0]["data"]["application/vnd.plotly.v1+json"] == {"data": [1], "layout": {}}


def test_tables_are_bounded_and_say_their_size(data_cell):
    table = data_cell("import pandas as pd\npd.DataFrame({'a': range(2000), 't': pd.Timestamp('2024-01-02')})"
                      )["results"][0]["data"][TABLE]
    assert (table["rows_total"], table["columns_total"], len(table["data"])) == (2000, 2, 500)
    assert table["columns"] == ["a", "t"] and table["data"][1][1].startswith("2024-01-02T00:00:00")
    table = data_cell("pd.DataFrame([['y' * 5000] * 30] * 90)")["results"][0]["data"][TABLE]
    assert 1 <= len(table["data"]) < 90 and table["rows_total"] == 90
    assert data_cell("pd.DataFrame([[1, 2]], columns=['a', 'a'])")["results"][0]["data"][TABLE]["columns"] == ["a", "a"]


def test_pillow_shows(data_cell):
    outcome = data_cell("from PIL import Image\nImage.new('RGB', (3, 2)).show()\nprint('after')")
    assert png_size(outcome["results"][0]["data"]["image/png"]) == (3, 2) and outcome["stdout"] == b"after\n"


# --- figures --------------------------------------------------------------------------------------------

PLOT = "import matplotlib.pyplot as plt\nimport numpy as np\nf, a = plt.subplots()\n"


def test_a_picture_is_shown_without_its_numbers_if_they_are_too_many(data_cell):
    result = data_cell(PLOT + "for i in range(12): a.plot(np.arange(5000), np.arange(5000) * i)")["results"][-1]
    assert png_size(result["data"]["image/png"])[0] > 0 and not result.get("chart")


def png_size(text):
    return struct.unpack(">II", base64.b64decode(text)[16:24])


def chart_of(cell, code):
    outcome = cell(PLOT + code)
    assert outcome["error"] is None and len(outcome["results"]) == 1, outcome["error"]
    return outcome["results"][0]["chart"]


def test_a_figure_has_its_pictures(data_cell):
    shown = data_cell(PLOT + "a.plot([1, 2])")["results"][-1]
    size = shown["metadata"]["image/png"]
    assert png_size(shown["data"]["image/png"]) == (size["width"], size["height"])
    assert shown["data"]["image/svg+xml"].lstrip().startswith("<?xml")
    shown = data_cell("%config InlineBackend.figure_formats = ['png']\n" + PLOT + "a.plot([1, 2]);")["results"][0]
    assert "image/svg+xml" not in shown["data"]
    assert data_cell("plt.get_fignums()")["results"][0]["data"]["text/plain"] == "[]"


def test_what_lies_outside_of_the_canvas_is_shown(data_cell):
    plain = png_size(data_cell(PLOT + "a.plot([1, 2]);")["results"][0]["data"]["image/png"])
    for more in ("a.set_title('high', y=1.3);", "a.legend(['x'], bbox_to_anchor=(1.5, 1));",
                 "a.text(1.4, .5, 'x', transform=a.transAxes);"):
        size = png_size(data_cell(PLOT + "a.plot([1, 2]);" + more)["results"][0]["data"]["image/png"])
        assert size[0] > plain[0] or size[1] > plain[1], more


def test_the_chart_of_lines(data_cell):
    chart = chart_of(data_cell, "a.plot([1, 2], [3, 4.5], label='up'); a.plot([1, 2], [1, float('nan')])\n"
                                "a.set_xlabel('time (s)'); a.set_ylabel('v [m]'); a.set_title('T'); a.set_yscale('log')")
    assert [chart[name] for name in ("type", "title", "x_label", "x_unit", "y_label", "y_unit", "x_scale", "y_scale")] == \
        ["line", "T", "time (s)", "s", "v [m]", "m", "linear", "log"]
    assert chart["elements"] == [{"label": "up", "points": [[1, 3], [2, 4.5]]},
                                 {"label": "Line 2", "points": [[1, 1], [2, None]]}]
    assert len(chart["x_ticks"]) == len(chart["x_tick_labels"]) > 2


def test_the_charts_of_dates_and_categories(data_cell):
    chart = chart_of(data_cell, "import datetime as d\na.plot([d.date(2024, 1, 1), d.date(2024, 1, 3)], [1, 2]);")
    assert chart["x_scale"] == "datetime" and chart["elements"][0]["points"][0] == ["2024-01-01T00:00:00+00:00", 1]
    chart = chart_of(data_cell, "a.plot(['x', 'y'], [1, 2]);")
    assert chart["x_scale"] == "categorical" and chart["elements"][0]["points"] == [["x", 1], ["y", 2]]


@pytest.mark.parametrize("code, kind, elements", [
    ("a.scatter([1, 2], [3, 4], label='s');", "scatter", [{"label": "s", "points": [[1, 3], [2, 4]]}]),
    ("a.bar(['u', 'v'], [1, 2.5], label='g');", "bar",
     [{"label": "u", "group": "g", "value": 1}, {"label": "v", "group": "g", "value": 2.5}]),
    ("a.barh(['u', 'v'], [1, 2]);", "bar",
     [{"label": "u", "group": "Group 1", "value": 1}, {"label": "v", "group": "Group 1", "value": 2}]),
    ("x = np.arange(2)\na.bar(x - .2, [1, 2], .4, label='m'); a.bar(x + .2, [3, 4], .4, label='n'); a.set_xticks(x, ['p', 'q']);",
     "bar", [{"label": "p", "group": "m", "value": 1}, {"label": "q", "group": "m", "value": 2},
             {"label": "p", "group": "n", "value": 3}, {"label": "q", "group": "n", "value": 4}]),
    ("a.pie([1, 3], labels=['a', 'b']);", "pie",
     [{"label": "a", "angle": 90, "radius": 1}, {"label": "b", "angle": 270, "radius": 1}]),
    ("a.boxplot([[1, 2, 3, 4, 99]]); a.set_xticklabels(['b']);", "box_and_whisker",
     [{"label": "b", "min": 1, "first_quartile": 2, "median": 3, "third_quartile": 4, "max": 4, "outliers": [99]}]),
    ("a.boxplot([[1, 2, 3, 4, 5], [2, 2.5, 3, 3.5, 4]], patch_artist=True, vert=False);", "box_and_whisker",
     [{"label": "1", "min": 1, "first_quartile": 2, "median": 3, "third_quartile": 4, "max": 5, "outliers": []},
      {"label": "2", "min": 2, "first_quartile": 2.5, "median": 3, "third_quartile": 3.5, "max": 4, "outliers": []}]),
    ("a.imshow([[1, 2], [3, 4]]);", "unknown", []),
])
def test_charts(data_cell, code, kind, elements):
    chart = chart_of(data_cell, code)
    assert chart["type"] == kind and chart["elements"] == elements


def test_subplots_are_one_chart_of_charts(data_cell):
    chart = chart_of(data_cell, "plt.close()\nf, (p, q) = plt.subplots(1, 2)\np.plot([1]); q.bar(['a'], [1])\nf.suptitle('S');")
    assert (chart["type"], chart["title"]) == ("superchart", "S")
    assert [one["type"] for one in chart["elements"]] == ["line", "bar"]


def test_many_points_are_thinned(data_cell):
    chart = chart_of(data_cell, "a.plot(range(100000));")
    assert len(chart["elements"][0]["points"]) <= 5000

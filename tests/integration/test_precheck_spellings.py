"""What the checker of Python finds, by itself: many spellings of the same few things, and ordinary programs in which it
must find nothing. The first test fails for a magic without a row."""

import ast
import contextlib
import doctest
import pathlib
import sys
import types

import pytest
from conftest import STATE, TOP

CHECKERS = TOP / "src/engine/review/precheckers"
PARTS = ("report.py", "python_names.py", "python_magics.py", "python.py")  # as engine/review/precheck.c puts them together
FOUND = {"network", "subprocess", "native", "dynamic", "internals", "environment", "unchecked"}


@pytest.fixture(scope="module")
def checker():
    """The checker's functions, beside the magics of the kernel that runs cells."""
    stand_in = types.ModuleType("_glovebox_display")
    stand_in.NAMES, stand_in.display = {}, None
    before = {name: sys.modules.get(name) for name in ("_glovebox_display", "_glovebox_magics")}
    sys.modules["_glovebox_display"] = stand_in
    sys.path.insert(0, str(TOP / "src/interpreter"))
    try:
        import _glovebox_magics  # noqa: F401  # pylint: disable=import-error,import-outside-toplevel,unused-import
        names = {"__name__": "checker"}
        exec(compile("".join((CHECKERS / part).read_text() for part in PARTS), "checker", "exec"), names)
        yield types.SimpleNamespace(**names)
    finally:
        sys.path.remove(str(TOP / "src/interpreter"))
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


def findings(checker, code, is_cell=True):
    report = checker.Report()
    checker.check(code.encode(), report, is_cell)
    return report.findings


def rules(checker, code, is_cell=True):
    return {rule for _, rule, _, is_import, _ in findings(checker, code, is_cell) if rule != "module" or not is_import}


def test_every_magic_of_the_kernel_has_a_row(checker):
    magics = sys.modules["_glovebox_magics"]
    assert set(magics.LINE_MAGICS) == set(checker.BY_LINE_MAGIC)
    assert set(magics.CELL_MAGICS) == set(checker.BY_CELL_MAGIC)


# Ways to have a function called `system` of os, to be used as FUNCTION('id').
OF_OS = """os.system
__import__('os').system
__import__('o' 's').system
__import__('o' + 's').system
getattr(os, 'system')
getattr(os, 'sys' + 'tem')
getattr(os, 'metsys'[::-1])
getattr(__import__('os'), 'system')
operator.attrgetter('system')(os)
operator.attrgetter('path.os.system')(os)
[getattr][0](os, 'system')
(lambda g: g)(getattr)(os, 'system')
functools.partial(getattr, os)('system')
shutil.os.system
tempfile._os.system
random._os.system
pathlib.os.system
os.path.os.system
glob.os.system
pd.io.common.os.system
np.lib.npyio.os.system
vars(os)['system']
os.__dict__['system']
os.__getattribute__('system')
object.__getattribute__(os, 'system')
sys.modules['os'].system
sys.modules['o' + 's'].system
importlib.import_module('os').system
(lambda: os)().system
[os][0].system
{'a': os}['a'].system
(os if 1 else 0).system
(o := os).system
max([os], key=id).system
warnings.sys.modules['os'].system
globals()['os'].system
print.__self__.__import__('os').system
().__class__.__base__.__subclasses__()[100].__init__.__globals__['system']
typing.get_type_hints
inspect.builtins.eval
pkgutil.resolve_name('os:system')
pydoc.locate('os.system')
unittest.mock._importer('os').system
platform.subprocess.getoutput
webbrowser.subprocess.getoutput
uuid.os.popen
os.popen
os.execv
os.posix_spawn
os.fork
os.spawnlp
os._execvpe
os._spawnvef
pty.spawn
subprocess.run
subprocess.Popen
subprocess.check_output
asyncio.create_subprocess_shell
asyncio.subprocess.create_subprocess_shell
asyncio.get_event_loop().subprocess_shell
multiprocessing.Process
concurrent.futures.ProcessPoolExecutor
eval
exec
compile
timeit.timeit
cProfile.run
code.interact
runpy.run_path
ctypes.CDLL
np.ctypeslib.load_library
pickle.loads
pd.read_pickle
pd.eval
numpy.distutils.exec_command
get_ipython().system
get_ipython().getoutput
get_ipython().ev
get_ipython().ex
get_ipython().context.execute_text
get_ipython().user_ns['os'].system
IPython.get_ipython().system
tkinter.Tcl().eval
socket.create_connection
urllib.request.urlopen
http.client.HTTPConnection
requests.get
asyncio.open_connection
logging.handlers.HTTPHandler
ssl.wrap_socket""".splitlines()

IMPORTS = {name: f"import {name}" for name in "timeit cProfile code pkgutil multiprocessing ssl logging".split()}

AROUND = {
    "plain": "{import}\n{name}('id')\n",
    "in a function": "{import}\ndef f():\n    return {name}('id')\nf()\n",
    "under %time": "%time {import}; {name}('id')\n",
    "under %%capture": "%%capture out\n{import}\n{name}('id')\n",
    "in the line of a magic": "{import}\n%cd {{{name}('id')}}\n",
}


# Braces end the expression of a magic's line: there it is a text.
@pytest.mark.parametrize("around, name", [(around, name) for around in AROUND for name in OF_OS
                                          if "{" not in name or around != "in the line of a magic"])
def test_a_function_is_found_however_it_is_reached(checker, name, around):
    """`os` and its like are imported by an earlier cell, so that an import says nothing; modules that do nothing else
    than what is looked for are imported here."""
    code = AROUND[around].replace("{import}", IMPORTS.get(name.split(".")[0], "import math")).replace("{name}", name).replace("{{", "{").replace("}}", "}")
    assert rules(checker, code) & FOUND, (code, findings(checker, code))


LINES = """!id
!!id
x = !id
x=!id
%sx id
%system id
x = %sx id
x=%sx id
%time !id
%time %sx id
%time %time %time !id
%timeit -n1 -r1 !id
%timeit -n 1 -r 1 __import__('subprocess').run(['id'])
%%time\\n!id
%%timeit -n1 -r1\\n%sx id
%%timeit import os; os.system('id')\\npass
%%capture\\n%sx id
%%capture x\\n%%time\\n%%capture y\\n!id
%%bash\\nid
%%sh\\nid
%%script bash\\nid
%%python\\nimport os
%%python3\\nprint(1)
%ls; id
%cat /etc/passwd; id
%cp a b; id
%mv a b; id
%rm a; id
%mkdir a; id
%ls $(id)
%pip install x
%pip --python /workspace/p install x
%conda install x
!pip install x
%run script.py
%env
%env HOME
%set_env A=1
%cd {__import__('os').system('id')}
%matplotlib {__import__('os').system('id')}
%pwd {os.system('id')}
%config {eval('1')}
%nosuch
%nosuch id
%%nosuch\\nid
%bash id
%%ruby\\nputs 1
get_ipython().system('id')
get_ipython().getoutput('id')
get_ipython().magic('sx id')
get_ipython().magic('%sx id')
get_ipython().magic(x)
get_ipython().run_line_magic('sx', 'id')
get_ipython().run_line_magic('s' 'x', 'id')
get_ipython().run_line_magic(x, 'id')
get_ipython().run_line_magic(line='id', magic_name='sx')
get_ipython().run_cell_magic('bash', '', 'id')
get_ipython().run_cell('!id')
get_ipython().run_cell("import os; os.system('id')")
get_ipython().run_cell(x)
get_ipython().help(x)
get_ipython().help('__import__("os").system("id")')
ip = get_ipython(); ip.run_line_magic('sx', 'id')
ip = get_ipython(); ip.system('id')
m = get_ipython().run_line_magic; m('sx', 'id')
s = get_ipython().system; s('id')
shell.run_line_magic('sx', 'id')
shell.run_cell_magic('bash', '', 'id')
getattr(get_ipython(), 'system')('id')
from IPython import get_ipython as g; g().system('id')
import _glovebox_magics
from _glovebox_magics import run_shell; run_shell('id')
from os import *\\nsystem('id')
from os import *\\nx = popen\\nx('id')
from os import system as s; s('id')
from os import (system)
from shutil import os as o; o.system('id')
from tempfile import _os; _os.system('id')
from pathlib import os; os.system('id')
from platform import subprocess
from concurrent.futures import *\\nProcessPoolExecutor()
if 0: import json as os\\nos.system('id')
if 0: import math as eval\\neval('1')
if 0: import json as sys\\nsys.modules['os']
o.system('id')
o.popen('id')
o.environ
f = o.fork
match o:\\n    case object(system=f): f('id')
match o:\\n    case object(__globals__=f): pass
def f(x): return x.system
for o in [os]: o.popen('id')
with o as p: p.execv('/bin/id', [])
a, b = os, 1; a.system('id')
(o := os).popen('id')
class A: f = staticmethod(os.system)
@os.system\\ndef f(): pass
print(f'{os.system("id")}')
[os.system(c) for c in ['id']]
lambda: os.system('id')
import antigravity
import pip; pip.main(['install', 'x'])
import turtle, tkinter
open('/proc/self/mem', 'wb')
open('/proc/self/environ')
df.query('@os.system("id")')
df.query(text)
df.eval('@pd.io.common.os.system("id")')
pd.eval('1')
df.eval("a.__class__.__base__.__subclasses__()")
pd.read_csv('http://a.example/x.csv')
pd.read_csv(filepath_or_buffer='https://a.example/x.csv')
url = 'https://a.example/x.csv'\\npd.read_csv(url)
pd.read_csv('s3' + '://b/x.csv')
sns.load_dataset('tips'); import seaborn as sns
from sklearn.datasets import fetch_openml; fetch_openml('x')
import torch; torch.load('x')
e = Exception(); e.__traceback__.tb_frame.f_globals
(i for i in ()).gi_frame.f_builtins
len.__self__
__loader__.load_module('ctypes')
__spec__.loader
from os import _execvpe
f, _ = string.Formatter().get_field('0.system', (os,), {}); f('id')
import pipes
import mailcap
import rlcompleter
from typing import ForwardRef; ForwardRef('eval("1")')
from test.support import script_helper
from test.support.script_helper import assert_python_ok
from concurrent import interpreters
loop.create_datagram_endpoint(Protocol, remote_addr=('a.example', 53))
loop.create_unix_connection(Protocol, path)
loop.create_server(Protocol, '127.0.0.1', 8000)
o.gethostbyname('a.example')
import IPython; IPython.embed()
import mysql.connector
f.__wrapped__.__globals__""".splitlines()


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_found(checker, line):
    code = line.replace("\\n", "\n")
    assert rules(checker, code) & FOUND, (code, findings(checker, code))


@pytest.mark.parametrize("code", [
    "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    "%time x = sum(range(10))",
    "%timeit -n 3 sum(range(10))",
    "%%time\nimport pandas as pd\ndf = pd.DataFrame({'a': [1]})\ndf.describe()",
    "%load_ext autoreload\n%autoreload 2",
    "%config InlineBackend.figure_format = 'retina'",
    "%%writefile notes.md\nimport os\n!id",
    "%%html\n<b>!id</b>",
    "%pwd",
    "%cd /workspace",
    "x = 5\nprint('100%', x % 3, not x)",
    "s = '''\n!id\n%sx id\n'''",
    "df.query('a > 1 and b == \"x\"')",
    "df.query('index in @names')",
    "df.eval('c = a + b')",
    "con.query('SELECT 1 FROM t WHERE x')",
    "import platform\nprint(platform.system())",
    "import numpy as np\nnp.trace(m), np.linalg.eig(m)",
    "plt.title('http is fine in a text')",
    "df.describe?",
    "?df",
])
def test_ordinary_cells_are_not_reported(checker, code):
    assert not rules(checker, code) - {"module"}, findings(checker, code)


def examples_of(folder):
    """The programs in the docstrings of a library, as a person would put them into cells."""
    parser = doctest.DocTestParser()
    for path in sorted(folder.rglob("*.py")):
        if "/tests/" in str(path):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for part in text.split('"""')[1::2]:
            try:
                code = "".join(example.source for example in parser.get_examples(part))
            except ValueError:
                continue
            with contextlib.suppress(SyntaxError, ValueError):  # some show what Python refuses
                ast.parse(code)
                if code:
                    yield code


# What a policy for data work usually denies, and what all rules deny that deny by themselves.
DENIED = {"unchecked", "syntax", "subprocess", "native", "internals"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ordinary_data_programs_are_not_denied(checker):
    """The examples of pandas, numpy and scipy: of 1,000, at most five."""
    root = STATE / "templates/python/root/usr"
    places = [*root.glob("local/lib/python3.*/dist-packages"), root / "lib/python3/dist-packages"] # of wheels, of Debian
    programs = [code for name in ("pandas", "numpy", "scipy") for place in places for code in examples_of(place / name)]
    if len(programs) < 1000:
        pytest.skip("template python is not built: its libraries' examples are the ordinary programs")
    denied = [(code, found) for code in programs if (found := rules(checker, code) & DENIED)]
    assert len(denied) * 200 <= len(programs), (len(denied), len(programs), denied)

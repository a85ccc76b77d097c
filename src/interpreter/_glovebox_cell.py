"""Runs cells: like a notebook's, their names stay for the next one, the value of the last expression and
figures that were left open are shown, and an error is reported as data."""

import __future__
import _signal
import ast
import io
import linecache
import sys
import tokenize

import _glovebox
import _glovebox_display
import _glovebox_errors
import _glovebox_figures
import _glovebox_ipython
import _glovebox_magics
import _glovebox_mime

_glovebox_script = None  # loaded later, into pages that every program touches: _glovebox_kernel puts it here
VALUES_KEPT = 16  # in Out; each may be large, and a context lives long
FUTURES = 0  # flags of code that says `from __future__ import …`, which holds for later cells
for feature in __future__.all_feature_names:
    FUTURES |= getattr(__future__, feature).compiler_flag


class NoInput(EOFError, NotImplementedError):
    """input() was called without stdin."""


NoInput.__name__ = NoInput.__qualname__ = "StdinNotImplementedError"
NoInput.__module__ = "IPython.core.error"


class Context:
    """One stateful interpreter."""

    def __init__(self, adopts=True):
        self.main = None
        self.futures = 0
        self.loop = None
        self.count = 0
        self.values, self.sources, self.newest = {}, [""], None
        self.adopts = adopts

    def begin(self, request, count):
        _glovebox_display.request = request
        _glovebox_mime.begin_cell()
        self.count = count
        if self.main is None:
            self.main = _glovebox_script.make_main("")
            del self.main.__dict__["__file__"]
            _glovebox_script.set_path("", request.arguments)
            _glovebox_ipython.settle(_glovebox_magics.Shell(self), self.adopts)
            self.main.__dict__.update(In=self.sources, Out=self.values)
            sys.modules["builtins"].__dict__["input"] = ask(sys.modules["builtins"].input)
        sys.modules.setdefault("__main__", self.main)
        mend_streams()

    def keep_value(self, value):
        """Sets _, __ and ___, unless the program has set `_` itself; Out holds the last few values."""
        names = self.main.__dict__
        if value is not self.values:
            self.values[self.count] = value
            while len(self.values) > VALUES_KEPT:
                del self.values[next(iter(self.values))]
        if "_" not in names or names["_"] is self.newest:
            names["___"], names["__"], names["_"] = names.get("__", ""), names.get("_", ""), value
            self.newest = value

    def forget_names(self):
        names = self.main.__dict__
        for name in [name for name in names if not name.startswith("__")]:
            del names[name]
        self.values.clear()
        names.update(In=self.sources, Out=self.values)

    def execute_text(self, text, name):
        """Runs a piece of a cell; gives the value of its last expression."""
        return evaluate(text, name, _glovebox_ipython.Interactivity.ast_node_interactivity)


context = Context()


def ask(plain_input):
    def input(prompt="", /):
        """Reads a line of the run's stdin; fails if there is none."""
        try:
            return plain_input(prompt)
        except EOFError:
            raise NoInput("input() was called, but nobody can answer here; set the value in the code, or give "
                          "the text as stdin of a run (cells of a session have none)") from None

    return input


def mend_streams():
    """Opens standard streams again that the last cell has closed or replaced; exit() closes sys.stdin."""
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name, None)
        if stream is not None and not getattr(stream, "closed", False):
            continue
        stream = getattr(sys, f"__{name}__", None)
        if stream is None or stream.closed:
            try:
                raw = io.FileIO(number, "w" if number else "r", closefd=False)
            except OSError:  # its descriptor is gone as well
                continue
            stream = io.TextIOWrapper(raw if number else io.BufferedReader(raw), "utf-8",
                                      "backslashreplace" if number == 2 else "surrogateescape", "\n",
                                      line_buffering=number == 2, write_through=number > 0)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def run(request, count):
    """Returns 0, 1 if the cell raised, or the code it asked to exit with."""
    code = 0
    try:
        context.begin(request, count)
        name = request.path or f"<cell {count}>"
        text = decode(request.code)
        context.sources.append(text)
        value = evaluate(text, name, _glovebox_ipython.Interactivity.ast_node_interactivity)
        if value is not None:
            context.keep_value(value)
            _glovebox_figures.forget(value)
            _glovebox_display.show_value(value, is_last())
    except SystemExit as end:
        code = _glovebox_script.exit_code(end)
    except BaseException as error:
        code = 1
        tell(request, error)
    try:
        _glovebox_figures.show_open()
    except BaseException as error:
        code = code or 1
        tell(request, error)
    _glovebox_script.flush()
    return code


def is_last():
    """Can no output of the program come between the value and the end? Else the value is sent first."""
    return type(sys.stdout) is type(sys.stderr) is io.TextIOWrapper and not _glovebox_figures.has_open()


def tell(request, error):
    """Sends the error, once: one that follows the first, or interrupts its report, is ignored."""
    if request.is_told:
        return

    def send(json):
        request.is_told = True  # no interrupt comes between this line and the next
        _glovebox.result(request.number, _glovebox.ERROR, json)

    _glovebox_errors.tell(error, send)


def evaluate(text, name, interactivity):
    """Runs all statements; gives the value of the last if it is an expression without a semicolon."""
    # The last line must end with a newline, as linecache's do: traceback relies on it to place carets.
    linecache.cache[name] = (len(text), None, (text if text.endswith("\n") else text + "\n").splitlines(True), name)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | context.futures
    try:
        tree = compile(_glovebox_magics.to_python(text), name, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    except _glovebox_magics.UsageError as error:
        raise error.with_traceback(None)
    if interactivity == "all":
        return evaluate_all(tree, name, flags)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and interactivity != "none":
        last = tree.body.pop()
    if tree.body:
        code = compile(tree, name, "exec", flags, dont_inherit=True)
        context.futures |= code.co_flags & FUTURES
        execute(code)
    if last is None:
        return None
    value = execute(compile(ast.Expression(last.value), name, "eval", flags, dont_inherit=True))
    return None if ends_with_semicolon(text) else value


def evaluate_all(tree, name, flags):
    """InteractiveShell.ast_node_interactivity = 'all': shows each expression, and returns the last one."""
    value = None
    for node in tree.body:
        if value is not None:
            _glovebox_display.display(value)
        if isinstance(node, ast.Expr):
            value = execute(compile(ast.Expression(node.value), name, "eval", flags, dont_inherit=True))
        else:
            execute(compile(ast.Module([node], []), name, "exec", flags, dont_inherit=True))
            value = None
    return value


def decode(source):
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return source.decode(encoding)


def execute(code):
    names = context.main.__dict__
    if not code.co_flags & 0x80:  # CO_COROUTINE
        return eval(code, names)
    return awaited(eval(code, names))


def awaited(coroutine):
    """Runs it on the context's loop, which all cells share. An interrupt cancels only the cell's task."""
    import asyncio

    if context.loop is None or context.loop.is_closed():
        context.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(context.loop)
    task = context.loop.create_task(coroutine)
    try:
        return context.loop.run_until_complete(task)
    except (KeyboardInterrupt, SystemExit):
        if not task.done():
            task.cancel()
            try:
                context.loop.run_until_complete(task)
            except BaseException:
                pass
        raise


def revive_loop():
    """In a process restored from an image: makes a new selector and a new wake-up socket for the loop. Tasks and
    timers go on; a task that waits for a connection sees its end. A loop that is not asyncio's own is dropped."""
    loop = context.loop
    if loop is None:
        return
    try:
        old, loop._selector = loop._selector, type(loop._selector)()
        keys = [key for key in old.get_map().values() if key.fileobj != loop._ssock.fileno()]
        old.close()
        loop._close_self_pipe()
        loop._make_self_pipe()
        for key in keys:
            loop._selector.register(key.fileobj, key.events, key.data)
        if loop._signal_handlers:
            _signal.set_wakeup_fd(loop._csock.fileno())
    except Exception:
        context.loop = None


def ends_with_semicolon(text):
    if ";" not in text:
        return False
    skip = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.INDENT,
            tokenize.DEDENT)
    last = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in skip:
                last = token
    except (tokenize.TokenError, SyntaxError):  # a line that is not Python
        return text.rstrip().endswith(";")
    return last is not None and last.string == ";"


class Nowhere:
    """A request for prewarming: no channel is open, so its results are discarded."""

    path, arguments, number, is_told = "", [], 0, False

    def __init__(self, code):
        self.code = code


def prewarm():
    """In the zygote: runs cells, so that a first cell need not import modules and specialise code."""
    global context
    plain_input = sys.modules["builtins"].input
    context = Context(adopts=False)
    for _ in range(12):
        run(Nowhere(b"x = 1\n[x + 1, 'a']\n"), 1)
    if "pandas" in sys.modules:
        run(Nowhere(b"import pandas\npandas.DataFrame({'a': [1, 2], 'b': [0.5, 1.5]})\n"), 1)
    if "matplotlib.pyplot" in sys.modules:
        run(Nowhere(b"import matplotlib.pyplot as p\np.plot([1, 2])\np.title('a')\n"), 1)
    run(Nowhere(b"1 / 0\n"), 1)
    sys.last_type = sys.last_value = sys.last_traceback = None
    context = Context()
    _glovebox_display.request = None
    linecache.clearcache()
    _glovebox_ipython.unsettle()
    sys.modules["builtins"].__dict__["input"] = plain_input

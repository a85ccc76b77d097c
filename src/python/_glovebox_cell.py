"""Runs cells: like a notebook's, their names stay for the next one, the value of the last expression and
figures that were left open are shown, and an error is told as data."""

import __future__
import ast
import builtins
import io
import linecache
import os
import sys
import tokenize
import traceback

import _glovebox
import _glovebox_figures
import _glovebox_mime
import _glovebox_script

FUTURES = 0  # flags of code that says `from __future__ import …`, which holds for later cells
for feature in __future__.all_feature_names:
    FUTURES |= getattr(__future__, feature).compiler_flag


class Context:
    """One stateful interpreter."""

    def __init__(self):
        self.main = None
        self.futures = 0
        self.loop = None
        self.request = None

    def begin(self, request):
        self.request = request
        if self.main is None:
            self.main = _glovebox_script.make_main("")
            del self.main.__dict__["__file__"]
            self.main.__dict__["display"] = builtins.display = display
            _glovebox_script.set_path("", request.arguments)
            _glovebox_figures.watch(self.show_figure)

    def show(self, what, bundle):
        if bundle:
            self.request.send_result(what, _glovebox_mime.to_json(bundle))

    def show_figure(self, figure):
        self.show(_glovebox.DISPLAY, _glovebox_mime.bundle(figure))


context = Context()


def display(*values, **options):
    """Shows values as rich as they can be shown; dict with raw=True is a ready MIME bundle."""
    for value in values:
        if options.get("raw") and isinstance(value, dict):
            context.show(_glovebox.DISPLAY, _glovebox_mime.checked(value))
        else:
            context.show(_glovebox.DISPLAY, _glovebox_mime.bundle(value, options.get("include")))


def run(request, count):
    """Returns 0, 1 if the cell raised, or the code it asked to exit with."""
    context.begin(request)
    name = request.path or f"<cell {count}>"
    code = 0
    try:
        value = evaluate(request.code, name)
        if value is not None:
            keep_value(value)
            _glovebox_figures.forget(value)
            context.show(_glovebox.VALUE, _glovebox_mime.bundle(value))
    except SystemExit as end:
        code = _glovebox_script.exit_code(end)
    except BaseException as error:
        code = 1
        tell(error, name)
    try:
        _glovebox_figures.show_open(context.show_figure)
    except BaseException as error:
        code = code or 1
        tell(error, name)
    _glovebox_script.flush()
    return code


def evaluate(source, name):
    """Runs all statements; gives the value of the last if it is an expression without a semicolon."""
    text = decode(source)
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | context.futures
    tree = compile(text, name, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body.pop()
    if tree.body:
        code = compile(tree, name, "exec", flags, dont_inherit=True)
        context.futures |= code.co_flags & FUTURES
        execute(code)
    if last is None:
        return None
    value = execute(compile(ast.Expression(last.value), name, "eval", flags, dont_inherit=True))
    return None if ends_with_semicolon(text) else value


def decode(source):
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return source.decode(encoding)


def execute(code):
    names = context.main.__dict__
    if not code.co_flags & 0x80:  # CO_COROUTINE
        return eval(code, names)
    import asyncio

    if context.loop is None or context.loop.is_closed():
        context.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(context.loop)
    return context.loop.run_until_complete(eval(code, names))


def ends_with_semicolon(text):
    if ";" not in text:
        return False
    skip = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.INDENT,
            tokenize.DEDENT)
    last = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skip:
            last = token
    return last is not None and last.string == ";"


def keep_value(value):
    names = context.main.__dict__
    names["___"], names["__"], names["_"] = names.get("__"), names.get("_"), value


def tell(error, name):
    """Sends the error: its traceback without our own frames, and the same as data."""
    steps = error.__traceback__
    while steps is not None and is_ours(steps.tb_frame.f_code.co_filename):
        steps = steps.tb_next
    error.__traceback__ = steps
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, steps
    try:
        text = "".join(traceback.format_exception(type(error), error, steps))
    except BaseException:
        text = f"{type(error).__name__}: the traceback could not be made\n"
    context.request.send_result(_glovebox.ERROR, _glovebox_mime.to_json({
        "name": type(error).__name__,
        "value": safe_text(error),
        "traceback": _glovebox_mime.shortened(text),
        "frames": frames_of(error, steps),
    }))


def is_ours(path):
    return os.path.dirname(path) == os.path.dirname(__file__)


def safe_text(error):
    try:
        return _glovebox_mime.shortened(str(error))
    except BaseException:
        return ""


def frames_of(error, steps):
    if isinstance(error, SyntaxError):
        return [{"file": error.filename or "", "line": error.lineno or 0, "function": "",
                 "code": (error.text or "").strip()}]
    try:
        return [{"file": frame.filename, "line": frame.lineno, "function": frame.name,
                 "code": frame.line or ""}
                for frame in traceback.extract_tb(steps, limit=-64)]
    except BaseException:
        return []


def rehearse():
    """In the zygote: what a first cell would have to import and specialise."""
    global context

    class Nowhere:
        path, arguments, code = "", [], b"x = 1\nx + 1\n"

        def send_result(self, what, text):
            pass

    for _ in range(12):
        run(Nowhere(), 1)
    Nowhere.code = b"1 / 0\n"
    run(Nowhere(), 1)
    sys.last_type = sys.last_value = sys.last_traceback = None
    context = Context()
    del builtins.display
    linecache.clearcache()
    _glovebox_figures.unwatch()

"""What a newer Python has: code that was written for it fails here with an error that does not name a version. The names
and grammar are those of "What's New In Python" 3.12 to 3.14."""

import re
import sys

HERE = sys.version_info[:2]
TEXT_MOST = 10_000

NAMES = {  # the minor version of Python 3: what it added, as module.name, class.name or a builtin's name alone
    12: "ast.TypeAlias ast.ParamSpec ast.TypeVar ast.TypeVarTuple asyncio.create_eager_task_factory "
        "asyncio.eager_task_factory calendar.Month calendar.Day calendar.JANUARY calendar.FEBRUARY collections.abc.Buffer "
        "dis.hasarg Fraction.is_integer inspect.BufferFlags inspect.getasyncgenlocals inspect.getasyncgenstate "
        "inspect.markcoroutinefunction int.is_integer itertools.batched math.sumprod Path.walk Path.with_segments "
        "PurePath.with_segments random.binomialvariate sys.activate_stack_trampoline sys.monitoring "
        "threading.setprofile_all_threads threading.settrace_all_threads "
        "types.get_original_bases typing.TypeAliasType typing.override",
    13: "PythonFinalizationError asyncio.QueueShutDown base64.z85decode base64.z85encode copy.replace "
        "dbm.sqlite3 glob.translate math.fma mimetypes.guess_file_type os.process_cpu_count os.timerfd_create "
        "pathlib.UnsupportedOperation Path.from_uri Path.full_match PurePath.full_match PurePath.parser Queue.shutdown queue.ShutDown "
        "re.PatternError statistics.kde statistics.kde_random sys._is_gil_enabled types.CapsuleType typing.NoDefault typing.ReadOnly "
        "typing.TypeIs typing.get_protocol_members typing.is_protocol warnings.deprecated",
    14: "annotationlib ast.compare complex.from_number compression concurrent.futures.InterpreterPoolExecutor "
        "concurrent.interpreters date.strptime decimal.IEEEContext float.from_number Fraction.from_number "
        "functools.Placeholder heapq.heapify_max heapq.heappop_max heapq.heappush_max heapq.heappushpop_max "
        "heapq.heapreplace_max io.Reader io.Writer operator.is_none operator.is_not_none os.reload_environ Path.copy "
        "Path.copy_into Path.info Path.move Path.move_into string.templatelib time.strptime typing.evaluate_forward_ref "
        "uuid.MAX uuid.NIL uuid.uuid6 uuid.uuid7 uuid.uuid8",
}
SINCE = {name: minor for minor, names in NAMES.items() for name in names.split()}

# In typing_extensions, for versions before.
EXTENSIONS = ("CapsuleType NoDefault ReadOnly TypeAliasType TypeIs deprecated evaluate_forward_ref get_original_bases "
              "get_protocol_members is_protocol override").split()
# What does the same in older versions.
INSTEAD = {
    "Path.walk": "os.walk()", "itertools.batched": "zip_longest(*[iter(items)] * n)",
    "math.sumprod": "sum(map(operator.mul, p, q))", "re.PatternError": "re.error", "copy.replace": "dataclasses.replace()",
    "os.process_cpu_count": "len(os.sched_getaffinity(0))", "Path.copy": "shutil.copy2() or shutil.copytree()",
    "Path.move": "shutil.move()", "uuid.uuid7": "uuid.uuid4()", "time.strptime": "datetime.strptime(…).time()",
    "date.strptime": "datetime.strptime(…).date()", "heapq.heapify_max": "heapq.heapify() of negated values",
    "heapq.heappush_max": "heapq.heappush() of negated values", "heapq.heappop_max": "heapq.heappop() of negated values",
    "compression": "gzip, bz2, lzma and zlib as modules of their own",
}

GRAMMAR = [  # the minor version, the error's text, the line it is in, and what to write
    (12, r"^f-string", r"", "in an f-string's braces it takes neither the quotes that enclose the f-string nor a backslash or "
     "comment; write other quotes there, or a variable"),
    (12, r"", r"^\s*type\s+\w+\s*(\[.*\])?\s*=", "it has no type statement; write an assignment, Name = …"),
    (12, r"", r"^\s*(async\s+def|def|class)\s+\w+\s*\[", "it has no type parameters in brackets; use typing.TypeVar and Generic"),
    (13, r"", r"^\s*type\s+\w+\s*\[[^\]]*=|^\s*(def|class)\s+\w+\s*\[[^\]]*=", "its type parameters have no defaults"),
    (14, r"", r"^[^\"'#]*(?<!\w)([tT][rR]?|[rR][tT])[\"']", "it has no t-strings; use an f-string"),
    (14, r"multiple exception types", r"", "exceptions without parentheses are those of 3.14: write except (A, B):"),
]


def hint_of(error, is_here):
    """None, or what is newer than this Python; is_here tells whether a module can be imported."""
    if isinstance(error, SyntaxError):
        return hint_of_grammar(str(error.msg or "")[:TEXT_MOST], str(error.text or "")[:TEXT_MOST])
    name = name_of(error)
    since = name and SINCE.get(name)
    if not since or HERE >= (3, since):
        return None
    last = name.rpartition(".")[2]
    if last in EXTENSIONS and is_here("typing_extensions"):
        instead = f"; typing_extensions.{last} is here"
    else:
        instead = f"; write {INSTEAD[name]}" if name in INSTEAD else ""
    return f"{name} came with Python 3.{since}, here is 3.{HERE[1]}{instead}"


def hint_of_grammar(text, line):
    for minor, of_text, of_line, instead in GRAMMAR:
        if HERE < (3, minor) and re.search(of_text, text) and re.search(of_line, line):
            return f"here is Python 3.{HERE[1]}, older than 3.{minor}: {instead}"
    return None


def name_of(error):
    """As in SINCE: of what could not be imported, is no attribute, or is no builtin."""
    if type(error) is ModuleNotFoundError:
        whole = error.name
        return whole if whole in SINCE else (whole or "").partition(".")[0]
    if type(error) is ImportError:
        found = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
        return found and f"{found[2]}.{found[1]}"
    if type(error) is AttributeError and type(error.name) is str:
        owner = error.obj
        if type(owner) is type(sys):
            return f"{vars(owner).get('__name__')}.{error.name}"
        kind = owner if isinstance(owner, type) else type(owner)
        return next((f"{each.__name__}.{error.name}" for each in kind.__mro__
                     if f"{each.__name__}.{error.name}" in SINCE and each.__module__ in STANDARD), None)
    if type(error) is NameError and type(error.name) is str:
        return error.name
    return None


STANDARD = ("builtins", "datetime", "fractions", "pathlib", "queue")

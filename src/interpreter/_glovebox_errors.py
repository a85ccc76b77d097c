"""Reports an exception: as the text that python3 prints, without the frames of glovebox, and as data. A note is added that
says what to do: for a module that the template does not have, a file that is not there, a connection that failed, code that
needs a newer Python, and what libraries say of downloads, screens and programs that a sandbox does not have. The
exception's message and attributes are unchanged."""

import errno
import importlib.util
import io
import os
import re
import sys
import traceback

import _glovebox_mime
import _glovebox_newer

HERE = os.path.dirname(__file__) + "/"
STEPS_MOST = 2000  # of a traceback that is read; of deeper ones only both ends are reported
FRAMES_MOST = 64  # in the data
CHAIN_MOST = 8

# module: the package's name if it is another, and modules that can be used instead
KNOWN = {
    "aiohttp": ("", "httpx requests urllib.request"), "altair": ("", "plotly matplotlib seaborn"),
    "bokeh": ("", "plotly matplotlib seaborn"), "bs4": ("beautifulsoup4", "lxml html.parser"),
    "cv2": ("opencv-python-headless", "skimage PIL scipy.ndimage"), "docx": ("python-docx", "zipfile"),
    "duckdb": ("", "sqlite3 pandas"), "fastparquet": ("", "pyarrow sqlite3 openpyxl csv"),
    "fitz": ("pymupdf", "pdfplumber pypdf"), "geopandas": ("", "shapely plotly"), "httpx": ("", "requests urllib.request"),
    "jinja2": ("", "string"), "lightgbm": ("", "sklearn"), "networkx": ("", "graphlib scipy.sparse"), "nltk": ("", "re"),
    "PIL": ("pillow", "matplotlib"), "plotly": ("", "matplotlib seaborn"), "polars": ("", "pandas"),
    "prophet": ("", "statsmodels.tsa"), "shap": ("", "sklearn.inspection"), "sqlalchemy": ("", "sqlite3 duckdb"),
    "pptx": ("python-pptx", "zipfile"), "pyarrow": ("", "sqlite3 openpyxl csv"), "pytest": ("", "unittest"),
    "requests": ("", "urllib.request"), "skimage": ("scikit-image", "PIL scipy.ndimage"), "sklearn": ("scikit-learn", "scipy numpy"),
    "statsmodels": ("", "scipy.stats sklearn statistics"), "tabulate": ("", "pandas"), "torch": ("", "sklearn numpy"),
    "xgboost": ("", "sklearn"), "xlrd": ("", "openpyxl"), "xlsxwriter": ("", "openpyxl"), "yaml": ("pyyaml", "json tomllib"),
}
# pandas: "Missing optional dependency 'x'. Use pip or conda to install x"; others: "pip install -U 'x>=1'"
OPTIONAL = re.compile(r"Missing optional dependency '([A-Za-z_][\w.]*)'|^requires (pygraphviz)|"
                      r"\b(?:pip3?|conda) install (?:-[cn] \S+ |-\S+ )*[\"'`]?"
                      r"(?!(?:is|it|the|an?|this|them|and|or|from|in|to)\b)([A-Za-z][\w.-]*)")
INSTEAD = {  # for packages and modules that are of little use in a sandbox
    "fastexcel": "polars reads files of Excel without it: pl.read_excel(file, engine=\"openpyxl\")",
    "IPython": "in a script print(), and save figures as files; cells of a session have display() and IPython.display",
    "google": "as for google.colab, files that were sent along lie in /workspace, and what is written there is handed out",
    "ipywidgets": "widgets need a browser that answers: print(), display() and figures are shown",
    "kaleido": "figures are shown as they are, and fig.write_html() writes them",
    "pygraphviz": "networkx's own layouts, as nx.spring_layout() and nx.multipartite_layout(), need no Graphviz",
    "tkinter": "there is no screen: figures and pictures are shown, or saved as files",
}
SAID = [  # messages of libraries, and what to do here
    (re.compile(r"vl-convert"), "charts are shown as they are, and chart.save(\"chart.html\") writes them"),
    (re.compile(r"copy/paste mechanism"), "there is no clipboard here; print it, or write a file"),
    (re.compile(r"Failed to download extension"), "DuckDB's extensions cannot be downloaded; parquet, json and icu are built in, "
     "and files of Excel are read by pandas"),
    (re.compile(r"NLTK Downloader|nltk\.download|download_corpora"),
     "nothing can be downloaded here; nltk's stemmers, wordpunct_tokenize, RegexpTokenizer and TweetTokenizer, and "
     "scikit-learn's text features, need no data"),
    (re.compile(r"latex could not be found|Failed to process string with tex"),
     "there is no LaTeX here; without text.usetex matplotlib draws $…$ itself"),
    (re.compile(r"The function is not implemented\. Rebuild|no display name|could not connect to display|cannot open display"),
     "there is no screen here; a figure, or PIL.Image.fromarray(…) as the last line, is shown"),
    (re.compile(r"^'(await|async with|async for)' outside function|^asynchronous comprehension outside"),
     "a script is no coroutine; write asyncio.run(main()), or run the code as a cell of a session, which may await"),
    (re.compile(r"^name '__file__' is not defined"), "a cell has no file; the working folder is os.getcwd(), /workspace"),
    (re.compile(r"no attribute 'grouped_bar'"), "matplotlib 3.11 has it, 3.10 is here; draw each group with ax.bar() and an offset"),
    (re.compile(r"unsupported locale setting"), "the locales here are C and C.UTF-8; format numbers with f\"{n:,.2f}\""),
    (re.compile(r"^cannot open resource"),
     "the fonts here are in /usr/share/fonts; ImageFont.truetype(\"DejaVuSans.ttf\", 24) is one, "
     "ImageFont.load_default(24) another"),
    (re.compile(r"Read-only file system|Permission denied: '/(?!workspace|tmp)"),
     "write into /workspace, which is the working folder, or /tmp"),
]
TEXT_MOST = 10_000
NAME_MOST = 100
NETWORK = ("glovebox: a sandbox reaches the hosts that its policy allows, often none: the denials of the result say which; "
           "data is sent along as files (run --file; session cp)")
SERVER = "glovebox: a server in a sandbox, and its clients, need a policy with a loopback interface, such as server; others have none"


def tell(error, send):
    """Sends the data. Parts of a hostile exception that cannot be read are left out; name and message always remain."""
    drop_ours(error)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, steps_of(error)
    name = name_of(error)
    not_printed = add_hint(error, True)
    try:
        told = data_of(error)
        told["traceback"] = text_of(error)
        if not_printed is not None and not_printed not in told["traceback"]:
            told["traceback"] += not_printed + "\n"
    except BaseException:
        told = {"name": name, "value": value_of(error), "traceback": f"{name}: its traceback could not be made\n",
                "frames": []}
    send(_glovebox_mime.to_json(told))


def name_of(error):
    return str(type.__getattribute__(type(error), "__name__"))


def value_of(error):
    try:
        return _glovebox_mime.shortened(str(str(error)))
    except BaseException as failure:
        return f"<{name_of(failure)} in __str__>"


def is_ours(path):
    return path.startswith(HERE)


def drop_ours(error):
    steps = steps_of(error)
    while steps is not None and is_ours(steps.tb_frame.f_code.co_filename):
        steps = steps.tb_next
    BaseException.__setattr__(error, "__traceback__", steps)


def steps_of(error):
    """The traceback, even if the class overrides attribute access."""
    return BaseException.__getattribute__(error, "__traceback__")


def limit_of(steps):
    count = 0
    while steps is not None and count <= STEPS_MOST:
        steps, count = steps.tb_next, count + 1
    return None if count <= STEPS_MOST else -STEPS_MOST


def text_of(error):
    whole = traceback.TracebackException(type(error), error, error.__traceback__,
                                         limit=limit_of(error.__traceback__))
    hide_ours(whole, 0)
    lines = list(whole.format())
    if not whole.stack and lines and lines[0].startswith("Traceback "):
        del lines[0]
    return _glovebox_mime.shortened("".join(lines))


def hide_ours(whole, depth):
    if whole is None or depth > CHAIN_MOST:
        return
    if getattr(whole, "stack", None):
        whole.stack[:] = [step for step in whole.stack if not is_ours(step.filename)]
    hide_ours(whole.__cause__, depth + 1)
    hide_ours(whole.__context__, depth + 1)
    for one in getattr(whole, "exceptions", None) or ():
        hide_ours(one, depth + 1)


def data_of(error, depth=0):
    told = {"name": name_of(error), "value": value_of(error), "traceback": "", "frames": frames_of(error)}
    parts = getattr(error, "exceptions", None) if is_group(error) else None
    if depth < CHAIN_MOST and isinstance(parts, tuple):
        told["exceptions"] = [data_of(part, depth + 1) for part in parts[:CHAIN_MOST]]
    if depth > 0:
        del told["traceback"]
        return told
    causes, seen = [], {id(error)}
    while len(causes) < CHAIN_MOST:
        how, next_one = "cause", error.__cause__
        if next_one is None:
            how, next_one = "context", None if error.__suppress_context__ else error.__context__
        if next_one is None or id(next_one) in seen:
            break
        seen.add(id(next_one))
        causes.append(data_of(next_one, CHAIN_MOST) | {"how": how})
        error = next_one
    if causes:
        told["causes"] = causes
    return told


def is_group(error):
    return sys.version_info >= (3, 11) and isinstance(error, BaseExceptionGroup)  # noqa: F821


def frames_of(error):
    if isinstance(error, SyntaxError):
        return [{"file": str(error.filename or ""), "line": error.lineno or 0, "function": "",
                 "code": str(error.text or "").strip()}]
    steps = traceback.extract_tb(error.__traceback__, limit=-FRAMES_MOST)
    return [{"file": step.filename, "line": step.lineno, "function": step.name, "code": step.line or ""}
            for step in steps if not is_ours(step.filename)]


def is_here(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def is_of_network(error):
    """Is it an unknown host or an unreachable address: the error itself, or one that a library has wrapped?"""
    socket = sys.modules.get("socket")
    for _ in range(CHAIN_MOST):
        if socket is None or not isinstance(error, BaseException):
            return False
        if isinstance(error, socket.gaierror) or (isinstance(error, OSError) and error.errno == errno.ENETUNREACH):
            return True
        reason = error.reason if type(error).__name__ == "URLError" else None  # urllib.request
        error = reason or error.__cause__ or error.__context__
    return False


def is_of_server(error):
    """Did listening fail: in socketserver, as http.server and werkzeug use it, or in asyncio?"""
    steps = steps_of(error)
    while steps is not None:
        code = steps.tb_frame.f_code
        if code.co_name == "create_server" or code.co_filename.endswith("/socketserver.py"):
            return True
        steps = steps.tb_next
    return False


def hint_of(error, in_cell):
    if is_of_network(error):
        return SERVER if is_of_server(error) else NETWORK
    if type(error) is FileNotFoundError:
        return hint_of_file(error, in_cell)
    newer = _glovebox_newer.hint_of(error, is_here)
    if newer is not None:
        return f"glovebox: {newer}"
    if isinstance(error, SyntaxError) and re.match(r"\s*(!|%%?)\w", str(error.text)):
        return "glovebox: lines that begin with ! or % are for cells of a session; a script starts programs by subprocess.run()"
    name = error.name if type(error) is ModuleNotFoundError else None
    if name is None:
        text = str(error)[:TEXT_MOST]
        for pattern, hint in SAID:
            if pattern.search(text):
                return f"glovebox: {hint}"
        found = OPTIONAL.search(text)
        name = found and next(filter(None, found.groups()))
    if type(name) is not str or not 0 < len(name) <= NAME_MOST:
        return None
    top = name.partition(".")[0]
    if name.startswith("IPython.") and is_here(top):
        return "glovebox: IPython itself is not here; IPython.display, get_ipython() and the common magics are"
    modules = [module for module, (package, _) in KNOWN.items() if package == name] + [top.replace("-", "_")]
    if not modules[-1].isidentifier() or any(is_here(module) for module in modules):
        return None
    if top in INSTEAD:
        return f"glovebox: this template has no {top}; {INSTEAD[top]}"
    if top in sys.stdlib_module_names:
        return f"glovebox: this template's python has no {top}"
    package, instead = KNOWN.get(top, ("", ""))
    instead = [module for module in instead.split() if is_here(module)]
    has = f"; it has {', '.join(instead)}" if instead else ""
    own = "" if top in KNOWN else f"; a file of your own {way_of(top + '.py', in_cell)}"
    return f"glovebox: this template has no {top}{has}; {way_to_add(package or top)}{own}"


def way_to_add(package):
    """How a package can be added. A copy of the caller's environment has its Python in /opt/python."""
    if sys.base_prefix == "/opt/python":
        return f"it is a copy of your program's environment, made anew after: pip install {package}"
    folders = [place for place in sys.path if place.endswith("-packages") and os.path.isdir(place)]
    if not any(os.listdir(place) for place in folders):
        return ("it has Python's own library alone: the template python has more, and template=\"this-environment\" of the Python "
                "package what your program has")
    return f"its operator can add it: glovebox libs request {package}"


def hint_of_file(error, in_cell):
    """The hint for a file that the caller could have sent along."""
    path = error.filename
    if error.errno != 2 or type(path) is not str or not 0 < len(path) <= NAME_MOST or not path.isprintable():
        return None
    place = os.path.normpath(os.path.join(os.getcwd(), path))
    if os.path.lexists(place):
        return None
    if place.startswith(("/proc/", "/sys/")):
        return ("glovebox: /proc has this sandbox's processes alone, and there is no /sys; os.cpu_count() and limits hold here, "
                "and resource.getrusage() or psutil.Process() tell what this one uses")
    if not place.startswith("/workspace/"):
        name = os.path.basename(place)
        there = f", and {name} is there" if os.path.lexists(f"/workspace/{name}") else ""
        return (f"glovebox: {os.path.dirname(place)} is not of this sandbox; files that were sent along lie in /workspace, the "
                f"working folder{there}") if not os.path.isdir(os.path.dirname(place)) else None
    name = place[len("/workspace/"):]
    return f"glovebox: /workspace has no {name}; a file of the caller's {way_of(name, in_cell)}"


def way_of(name, in_cell):
    """How the caller sends a file: along with a run. A cell may be one of a session, which takes files at any time."""
    return f"is sent along (run --file {name}" + ("; to a session: session cp, files.write())" if in_cell else ")")


def add_hint(error, in_cell=False):
    """Called before the traceback is made. A failure here must not prevent the report of the exception. Returns
    a hint that Python will not print with the exception, or None."""
    try:
        hint = hint_of(error, in_cell)
        if hint is None or hint in getattr(error, "__notes__", ()):
            return None
        if not hasattr(error, "add_note"):  # before Python 3.11
            return hint
        error.add_note(hint)
        return hint if OMITS_NOTES and isinstance(error, SyntaxError) else None
    except BaseException:
        return None


def omits_notes():
    """Python 3.11.2 prints no notes of a SyntaxError, 3.11.7 does."""
    error, printed, stream = SyntaxError("x", ("file", 1, 1, "text")), io.StringIO(), sys.stderr
    if not hasattr(error, "add_note"):
        return False
    error.add_note("note")
    try:
        sys.stderr = printed
        sys.__excepthook__(SyntaxError, error, None)
    finally:
        sys.stderr = stream
    return "note" not in printed.getvalue()


OMITS_NOTES = omits_notes()
_glovebox_mime.text_of_error = text_of

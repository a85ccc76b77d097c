"""Converts a value to a MIME bundle by the conventions of Jupyter: `_repr_*_` methods, `_repr_mimebundle_`,
text/plain always; application/json for plain data, and the numbers of a table in addition to its HTML."""

import base64
import json
import sys

import _glovebox_text

TEXT_MOST = 1 << 20  # characters of one text form
LEVELS_MOST = 25  # of one form; gloveboxd drops all of a result that is nested deeper
VALUES_MOST = 80_000  # in all JSON of a cell; gloveboxd drops results beyond 100,000
BYTES_MOST = 16 << 20  # of one image
TABLE = "application/vnd.glovebox.table+json"
TABLE_ROWS, TABLE_COLUMNS, TABLE_CHARACTERS = 500, 100, 256 << 10
PLOTLY = "application/vnd.plotly.v1+json"

METHODS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_pdf_", "application/pdf"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
    ("_repr_javascript_", "application/javascript"),
)
# These have only text/plain and JSON; most values are of these types.
SIMPLE = frozenset((int, float, complex, bool, str, bytes, type(None), list, tuple, dict, set, frozenset))
# What JSON can hold; None is not shown.
PLAIN = (dict, list, tuple, str, int, float)


text_of_error = repr  # _glovebox_errors puts its own here


class Bundle:
    """All forms of one value."""

    def __init__(self):
        self.data, self.metadata, self.chart = {}, {}, None
        self.id, self.update = None, False

    def to_json(self):
        # What has no other form is sent all the same: gloveboxd leaves it out, and says so in `denials`.
        whole = {"data": {kind: form for kind, form in self.data.items() if fits(form)} or self.data}
        if self.metadata and fits(self.metadata):
            whole["metadata"] = self.metadata
        if self.chart is not None and fits(self.chart):
            whole["chart"] = self.chart
        if self.id is not None:
            whole["id"], whole["update"] = self.id, self.update
        return to_json(whole)

    def add(self, kind, value):
        """Keeps only valid forms, since programs make bundles too."""
        if isinstance(value, tuple):  # (data, metadata)
            if len(value) > 1 and isinstance(value[1], dict):
                self.add_metadata({kind: value[1]})
            value = value[0] if value else None
        if value is None or not isinstance(kind, str) or "\0" in kind:
            return
        if isinstance(value, (bytes, bytearray)):
            if len(value) <= BYTES_MOST:
                self.data[kind] = base64.b64encode(value).decode("ascii")
        elif isinstance(value, str):
            self.data[kind] = str(value) if kind.startswith("image/") else shortened(str(value))
        elif kind.endswith("json"):
            self.add_json(value, kind)

    def add_json(self, value, kind="application/json"):
        """Data that JSON can hold exactly: no NaN, no integer of more than 64 bits, no cycle, bounded size."""
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False)
            text.encode()  # fails for a lone surrogate
            if len(text) <= TEXT_MOST:
                self.data[kind] = json.loads(text, parse_int=integer, object_pairs_hook=named if "\\u0000" in text else None)
        except (TypeError, ValueError, RecursionError):
            pass

    def add_metadata(self, metadata):
        try:
            self.metadata.update(json.loads(json.dumps(metadata, allow_nan=False), object_pairs_hook=named))
        except (TypeError, ValueError, RecursionError):
            pass

    def keep_only(self, include, exclude):
        for kind in list(self.data):
            if include and kind not in include or exclude and kind in exclude:
                del self.data[kind]


room = VALUES_MOST


def begin_cell():
    global room
    room = VALUES_MOST


def fits(form):
    """Takes the room that a form needs, if there is as much. Texts and pictures always fit."""
    global room
    if isinstance(form, str):
        return True
    try:
        left = room - values_of(form, LEVELS_MOST)
    except RecursionError:
        return False
    if left >= 0:
        room = left
    return left >= 0


def values_of(form, levels):
    if not isinstance(form, (dict, list, tuple)):
        return 1
    if levels == 0:
        raise RecursionError
    parts = form.values() if isinstance(form, dict) else form
    return 1 + sum(values_of(part, levels - 1) if isinstance(part, (dict, list, tuple)) else 1 for part in parts)


def named(members):
    """Drops members whose name has a NUL: readers of JSON in C refuse the whole object."""
    if any("\0" in name for name, _ in members):
        raise ValueError("a NUL")
    return dict(members)


def integer(text):
    """Refuses larger integers: readers of JSON change them without an error."""
    value = int(text)
    if not -1 << 63 <= value < 1 << 64:
        raise ValueError(text)
    return value


def to_json(data):
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def shortened(text, most=TEXT_MOST):
    if len(text) <= most:
        return text
    head = most * 6 // 10
    tail = most - head
    return f"{text[:head]}\n… {len(text) - most} characters are left out …\n{text[-tail:]}"


def given(data, metadata=None):
    """A bundle that the program has made."""
    bundle = Bundle()
    for kind, value in data.items():
        bundle.add(kind, value)
    if metadata:
        bundle.add_metadata(metadata)
    return bundle


def bundle_of(value, include=None, exclude=None):
    """All forms of any object."""
    bundle = Bundle()
    bundle.data["text/plain"] = shortened(_glovebox_text.text_of(value))
    kind = type(value)
    if kind not in SIMPLE and not isinstance(value, type):
        add_own(bundle, value, include, exclude)
        special = SPECIAL.get((kind.__module__.partition(".")[0], kind.__name__))
        if special is not None:
            special(bundle, value)
    if "application/json" not in bundle.data:
        if isinstance(value, getattr(sys.modules.get("numpy"), "generic", ())):
            value = value.item()
        if isinstance(value, PLAIN):
            bundle.add_json(value)
    bundle.keep_only(include, exclude)
    return bundle


def add_own(bundle, value, include, exclude):
    # Objects that have every attribute (mocks, proxies) would have these too.
    if has(value, "_a_name_that_nobody_has_"):
        return
    shown = call(value, "_repr_mimebundle_", include=include, exclude=exclude)
    if isinstance(shown, tuple):
        if len(shown) > 1 and isinstance(shown[1], dict):
            bundle.add_metadata(shown[1])
        shown = shown[0] if shown else None
    own = shown if isinstance(shown, dict) else {}
    for kind, one in own.items():
        bundle.add(kind, one)
    for method, kind in METHODS:
        if kind not in own and not (exclude and kind in exclude):
            bundle.add(kind, call(value, method))


def has(value, name):
    try:
        return callable(getattr(value, name, None))
    except Exception:
        return False


def call(value, method, **arguments):
    """If one form fails the others are shown; the failure is printed on stderr."""
    try:
        function = getattr(value, method, None)
        return function(**arguments) if callable(function) else None
    except NotImplementedError:
        return None
    except Exception as error:
        print(text_of_error(error), end="", file=sys.stderr)
        return None


# --- values shown as picture or HTML that are also sent as numbers --------------------------------

def add_table(bundle, value):
    """A DataFrame or Series: as many rows as fit, in split orientation, and how many there are."""
    frame = value if value.ndim == 2 else value.to_frame()
    rows, columns = frame.shape
    shown = min(rows, TABLE_ROWS)
    while True:
        part = frame.iloc[:shown, :TABLE_COLUMNS]
        try:
            text = part.to_json(orient="split", date_format="iso", default_handler=str)
        except Exception:
            return  # two columns of one name, a hostile cell: text and HTML are shown
        if len(text) <= TABLE_CHARACTERS or shown <= 1:
            break
        shown = shown * TABLE_CHARACTERS // len(text) * 9 // 10 if shown > 10 else shown // 2
        shown = max(shown, 1)
    if len(text) <= TABLE_CHARACTERS:
        bundle.data[TABLE] = json.loads(text) | {"rows_total": rows, "columns_total": columns}


def add_plotly(bundle, value):
    try:
        bundle.add_json(json.loads(value.to_json()), PLOTLY)
    except Exception:
        pass


# (first part of the module's name, class)
SPECIAL = {
    ("pandas", "DataFrame"): add_table,
    ("pandas", "Series"): add_table,
    ("plotly", "Figure"): add_plotly,
    ("plotly", "FigureWidget"): add_plotly,
}  # and matplotlib's Figure: _glovebox_figures

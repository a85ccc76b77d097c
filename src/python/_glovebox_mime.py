"""Turns a value into a MIME bundle by the conventions of Jupyter: `_repr_*_` methods, `_repr_mimebundle_`,
text/plain always; and application/json where the value is plain data."""

import base64
import json
import pprint

TEXT_MOST = 1 << 20  # characters of one text form
BYTES_MOST = 16 << 20  # of one image
WIDTH = 79

# method, type, whether it gives bytes (they travel as base64)
METHODS = (
    ("_repr_html_", "text/html", False),
    ("_repr_markdown_", "text/markdown", False),
    ("_repr_svg_", "image/svg+xml", False),
    ("_repr_png_", "image/png", True),
    ("_repr_jpeg_", "image/jpeg", True),
    ("_repr_pdf_", "application/pdf", True),
    ("_repr_latex_", "text/latex", False),
    ("_repr_json_", "application/json", False),
    ("_repr_javascript_", "application/javascript", False),
)
PLAIN_DATA = (dict, list, tuple, str, int, float, bool)


def to_json(data):
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def shortened(text, most=TEXT_MOST):
    if len(text) <= most:
        return text
    head = most * 6 // 10
    tail = most - head
    return f"{text[:head]}\n… {len(text) - most} characters are left out …\n{text[-tail:]}"


def bundle(value, include=None):
    """A figure of matplotlib, an image of Pillow or any object that can show itself."""
    data = {"text/plain": plain(value)}
    shown = mimebundle_of(value, include)
    if shown is not None:
        data.update(checked(shown))
    if not isinstance(value, type):
        for method, kind, _is_bytes in METHODS:
            if kind not in data:
                add(data, kind, call(value, method))
    figure = figure_of(value)
    if figure is not None and "image/png" not in data:
        add(data, "image/png", figure)
    if "application/json" not in data and isinstance(value, PLAIN_DATA):
        add_json(data, value)
    return data


def mimebundle_of(value, include):
    if isinstance(value, type):
        return None
    shown = call(value, "_repr_mimebundle_", include=include, exclude=None)
    if isinstance(shown, tuple):
        shown = shown[0] if shown else None
    return shown if isinstance(shown, dict) else None


def checked(bundle_given):
    """Keeps what a bundle may hold; programs make them too."""
    data = {}
    for kind, value in bundle_given.items():
        if isinstance(kind, str):
            add(data, kind, value)
    return data


def add(data, kind, value):
    if isinstance(value, tuple):  # (data, metadata)
        value = value[0] if value else None
    if value is None:
        return
    if isinstance(value, (bytes, bytearray)):
        if len(value) <= BYTES_MOST:
            data[kind] = base64.b64encode(value).decode("ascii")
    elif isinstance(value, str):
        data[kind] = str(value) if kind.startswith("image/") else shortened(str(value))
    elif kind.endswith("json"):
        add_json(data, value, kind)


def add_json(data, value, kind="application/json"):
    """Data that JSON can say exactly: no NaN, nothing that repeats itself, bounded."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return
    if len(text) <= TEXT_MOST:
        data[kind] = json.loads(text)


def call(value, method, **arguments):
    # Objects that answer to every name (mocks, proxies) would answer to this one too.
    try:
        if callable(getattr(value, "_a_name_that_nobody_has_", None)):
            return None
        function = getattr(value, method, None)
        return function(**arguments) if callable(function) else None
    except NotImplementedError:
        return None
    except Exception:
        import traceback

        traceback.print_exc()
        return None


def plain(value):
    try:
        text = repr(value)
        if len(text) > WIDTH and type(value) in (dict, list, tuple, set, frozenset):
            text = pprint.pformat(value, width=WIDTH, sort_dicts=False)
    except RecursionError:
        raise
    return shortened(text)


def figure_of(value):
    kind = type(value)
    if kind.__name__ == "Figure" and kind.__module__ == "matplotlib.figure":
        import io

        file = io.BytesIO()
        value.savefig(file, format="png")
        return file.getvalue()
    return None

"""Runs inside the sandbox: calls a function and writes its value as JSON with exact forms. The text of this file is sent
there, so it may not import anything of this package. `call(request)` is used only there; glovebox._values reads the result."""

import base64
import json
import pickle
import sys
import types
from typing import Any

DEPTH_MAX = 100  # nested lists; json of both sides can read that
INLINE_MAX = 500_000  # characters; a longer value comes back as a file
FILE = "/workspace/.glovebox-value.json"


def form(kind: str, value: Any) -> Any:
    return {"$": kind, "v": value}


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def array(value: Any) -> Any:
    """An array of numpy with numbers, bools, texts or times; an array of objects becomes a list."""
    if value.dtype.kind not in "biufcSUmM":
        return encode(value.tolist())
    value = value.astype(value.dtype.newbyteorder("<"), order="C")
    return form("array", [value.dtype.str, list(value.shape), b64(value.tobytes())])


def foreign(value: Any, depth: int) -> Any:
    """Types with a form of their own, by module and name of the type."""
    name = type(value).__module__.split(".")[0] + "." + type(value).__name__
    if name == "numpy.ndarray":
        return array(value)
    if name.startswith("numpy.") and hasattr(value, "item"):
        return array(value.reshape(())) if value.dtype.kind in "mM" else encode(value.item(), depth + 1)
    if name == "pandas.DataFrame":
        return form("table", [[encode(each, depth + 1) for each in value.columns], encode(value.index.tolist(), depth + 1),
                              [encode(value.iloc[:, at].tolist(), depth + 1) for at in range(value.shape[1])]])
    if name == "pandas.Series":
        return form("series", [encode(value.name, depth + 1), encode(value.index.tolist(), depth + 1),
                               encode(value.tolist(), depth + 1)])
    if name in ("pandas.Timestamp", "datetime.datetime"):
        return form("datetime", value.isoformat())
    if name in ("datetime.date", "datetime.time"):
        return form(name[9:], value.isoformat())
    if name in ("datetime.timedelta", "pandas.Timedelta"):
        return form("timedelta", [value.days, value.seconds, value.microseconds])
    if name in ("decimal.Decimal", "uuid.UUID", "pathlib.PosixPath", "pathlib.PurePosixPath"):
        return form({"Decimal": "decimal", "UUID": "uuid"}.get(name.split(".")[1], "path"), str(value))
    if name == "fractions.Fraction":
        return form("fraction", [encode(value.numerator), encode(value.denominator)])
    if hasattr(value, "__dataclass_fields__"):
        return encode({key: getattr(value, key) for key in value.__dataclass_fields__}, depth + 1)
    raise TypeError("the function returns a value of type %s, which has no form in JSON; return plain data, bytes, "
                    "dates, decimals, numpy arrays or tables" % type(value).__qualname__)


def encode(value: Any, depth: int = 0) -> Any:
    if depth > DEPTH_MAX:
        raise ValueError("the value that the function returns is nested deeper than %d" % DEPTH_MAX)
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if -1 << 53 < value < 1 << 53 else form("int", hex(value))
    if kind is float:
        return value if value - value == 0 else form("float", repr(value))
    if kind is complex:
        return form("complex", [encode(value.real), encode(value.imag)])
    if isinstance(value, str):
        try:
            value.encode()
            return str(value)
        except UnicodeEncodeError:
            return form("text", b64(value.encode("utf-8", "surrogatepass")))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return form("bytes", b64(bytes(value)))
    if isinstance(value, list):
        return [encode(each, depth + 1) for each in value]
    for base in (tuple, set, frozenset):
        if isinstance(value, base):
            return form(base.__name__, [encode(each, depth + 1) for each in value])
    if isinstance(value, dict):
        if "$" not in value and all(type(key) is str and key.isascii() for key in value):
            return {key: encode(each, depth + 1) for key, each in value.items()}
        return form("dict", [[encode(key, depth + 1), encode(each, depth + 1)] for key, each in value.items()])
    if isinstance(value, int):  # enumerations
        return encode(int(value))
    return foreign(value, depth)


class Value:
    """Shown as the cell's value: the text of the JSON."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return {"text/plain": self.text}

    def __repr__(self) -> str:
        return self.text


def call(request: Any) -> Value:
    """request: as glovebox._functions.request_of() writes it."""
    from importlib import metadata
    for name in request["packages"]:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            raise ModuleNotFoundError("the template of this sandbox has no package %s; choose another template, or have "
                                      "one built with it" % name) from None
    module = types.ModuleType("__glovebox__")  # classes look up their module
    sys.modules[module.__name__] = module
    space = module.__dict__
    exec(compile(request["source"], "<function>", "exec"), space)
    space.update(pickle.loads(request["data"]))
    arguments, options = pickle.loads(request["arguments"])
    value = space[request["name"]](*arguments, **options)
    if hasattr(value, "__await__"):
        import asyncio
        value = asyncio.get_event_loop().run_until_complete(value)
    if request["pickled"]:
        text = json.dumps(form("pickle", b64(pickle.dumps(value, 4))))
    else:
        text = json.dumps(encode(value), allow_nan=False)
    if len(text) > INLINE_MAX:
        with open(FILE, "w") as file:
            file.write(text)
        text = ""
    return Value(text)

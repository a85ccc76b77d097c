"""Reads the JSON with exact forms that _inside.py wrote. Code inside a sandbox can write anything there, so nothing is
executed, every form is checked, and only the forms below make objects."""

from __future__ import annotations

import base64
import datetime
import re
from importlib import import_module
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from ._http import loads
from .errors import ProtocolError

DEPTH_MAX = 250  # levels of the JSON; a form has two
NUMBERS = re.compile(r"[<|][biufcSUmM]\d{1,9}(\[\d{0,6}[A-Za-z]{1,2}\])?")


class Array(NamedTuple):
    """An array of numpy where this program has no numpy: its elements' type, its shape, its bytes."""
    dtype: str
    shape: Tuple[int, ...]
    data: bytes


class Table(NamedTuple):
    """A table of pandas where this program has no pandas: `rows` is its index, `data` holds its columns."""
    columns: List[Any]
    rows: List[Any]
    data: List[List[Any]]


def value_of(text: bytes, unpickle: bool = False) -> Any:
    """unpickle: the caller allows code inside the sandbox to run code in this program."""
    value = loads(text)
    if unpickle and isinstance(value, dict) and value.get("$") == "pickle":
        import pickle
        return pickle.loads(base64.b64decode(value["v"]))
    try:
        return _decode(value, 0)
    except ProtocolError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, ArithmeticError, MemoryError, RecursionError) as error:
        raise ProtocolError(f"the sandbox returned a value that cannot be read: {type(error).__name__}") from None


def _decode(value: Any, depth: int) -> Any:
    if depth > DEPTH_MAX:
        raise ProtocolError(f"the sandbox returned a value that is nested deeper than {DEPTH_MAX}")
    if isinstance(value, list):
        return [_decode(each, depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    if "$" not in value:
        return {key: _decode(each, depth + 1) for key, each in value.items()}
    kind = value["$"]
    if kind not in _FORMS or len(value) != 2:
        raise ProtocolError("the sandbox returned a value of a form that is not known")
    inner = value["v"]
    return _FORMS[kind](_decode(inner, depth + 1) if isinstance(inner, list) else inner)


def _bytes(text: Any) -> bytes:
    return base64.b64decode(text, validate=True)


def _decimal(text: Any) -> Any:
    from decimal import Decimal
    return Decimal(str(text))


def _fraction(parts: Any) -> Any:
    from fractions import Fraction
    return Fraction(parts[0], parts[1])


def _uuid(text: Any) -> Any:
    from uuid import UUID
    return UUID(str(text))


def _path(text: Any) -> Any:
    from pathlib import PurePosixPath
    return PurePosixPath(str(text))


def _datetime(text: Any) -> datetime.datetime:
    return datetime.datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))


def _array(parts: Any) -> Any:
    kind, shape, data = str(parts[0]), tuple(int(each) for each in parts[1]), _bytes(parts[2])
    if not NUMBERS.fullmatch(kind) or len(shape) > 32 or any(each < 0 for each in shape):
        raise ProtocolError("the sandbox returned an array of a type or shape that is not known")
    try:
        numpy: Any = import_module("numpy")
    except ImportError:
        return Array(kind, shape, data)
    return numpy.frombuffer(data, numpy.dtype(kind)).reshape(shape).copy()


def _table(parts: Any) -> Any:
    columns, index, data = parts
    try:
        pandas: Any = import_module("pandas")
    except ImportError:
        return Table(columns, index, data)
    frame = pandas.DataFrame(dict(enumerate(data)), index=index)
    frame.columns = columns
    return frame


def _series(parts: Any) -> Any:
    name, index, data = parts
    try:
        pandas: Any = import_module("pandas")
    except ImportError:
        return Table([name], index, [data])
    return pandas.Series(data, index=index, name=name)


_FORMS: Dict[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 16),
    "float": lambda text: {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}[text],
    "complex": lambda parts: complex(parts[0], parts[1]),
    "text": lambda text: _bytes(text).decode("utf-8", "surrogatepass"),
    "bytes": _bytes,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": lambda pairs: {key: each for key, each in pairs},
    "datetime": _datetime,
    "date": lambda text: datetime.date.fromisoformat(text),
    "time": lambda text: datetime.time.fromisoformat(text),
    "timedelta": lambda parts: datetime.timedelta(days=parts[0], seconds=parts[1], microseconds=parts[2]),
    "decimal": _decimal,
    "fraction": _fraction,
    "uuid": _uuid,
    "path": _path,
    "array": _array,
    "table": _table,
    "series": _series,
}

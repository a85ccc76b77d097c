# json.py - reads JSON by RFC 8259 that has one meaning for every reader: one text, one value. All that a lenient
# reader would accept beyond that is an error.

import json
import re

DEPTH_MOST = 200


class NoJson(Exception):
    """Its text is fixed, and never contains a part of the input."""


def refuse_constant(name):
    raise NoJson("NaN or Infinity")


def finite(text):
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise NoJson("a number that is too large")
    if number == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise NoJson("a number that is too small")
    return number


def whole(text):
    if len(text) > 400:
        raise NoJson("a number that is too long")
    return int(text)


def once(pairs):
    value = dict(pairs)
    if len(value) != len(pairs):
        raise NoJson("a key twice in one object")
    return value


def bound_depth(value):
    level = [value]
    for _ in range(DEPTH_MOST):
        level = [inner for outer in level if isinstance(outer, (dict, list))
                 for inner in (outer.values() if isinstance(outer, dict) else outer)]
        if not level:
            return value
    raise NoJson("values nested deeper than 200")


def bound_texts(value, text):
    """A single surrogate is not a character: some readers refuse it, others replace it."""
    if re.search(r"\\u[dD][89a-fA-F]", text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise NoJson("half a pair of surrogates") from None
    return value


def read_json(data):
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoJson(f"no UTF-8 at byte {error.start}") from None
    try:
        value = json.loads(text, parse_constant=refuse_constant, parse_float=finite, parse_int=whole, object_pairs_hook=once)
        return bound_texts(bound_depth(value), text)
    except json.JSONDecodeError as error:
        raise NoJson(f"line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise NoJson("values nested deeper than 200") from None
    except ValueError:
        raise NoJson("what cannot be read") from None

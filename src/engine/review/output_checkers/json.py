# json.py - JSON as RFC 8259 has it and nobody reads it differently: one text, one value. Everything that a
# lenient reader would pass over is said.

import json
import re

DEPTH_MOST = 200


class NoJson(Exception):
    """Its text is one of ours, never a piece of what was read."""


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
    """Half a pair of surrogates is no character: some readers refuse it, others make it another one."""
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

"""Functions in sandboxes: how they get in, and what comes back."""

import dataclasses
import datetime
import decimal
import fractions
import json
import math
import pathlib
import uuid

import glovebox
import pytest
from glovebox import _inside
from glovebox._values import Array, value_of
from glovebox.errors import FunctionError, InvalidArgumentException, ProtocolError

FACTOR = 3


@dataclasses.dataclass
class Point:
    x: int
    y: float


def helper(x):
    return x * FACTOR + math.floor(0.5)


def function(x, plus=0):
    return helper(x) + plus


def same(value):
    return value


VALUES = [
    None, True, 0, -1, 2 ** 53, -2 ** 200, 10 ** 6000, 1.5, float("inf"), 1 + 2j, "", "é😀\0", "\ud800", b"\xff\0", [], [1, [2]], (1, "a"),
    {1, 2}, frozenset([1]), {}, {"a": 1}, {1: "a", (2,): b"b"}, {"$": 1}, {"é": 1},
    datetime.datetime(2024, 2, 29, 1, 2, 3, 4, datetime.timezone.utc), datetime.date(1, 1, 1), datetime.time(23, 59),
    datetime.timedelta(-1, 5, 7), decimal.Decimal("1.10"), decimal.Decimal("1E+400"), fractions.Fraction(1, 3),
    uuid.UUID(int=5), pathlib.PurePosixPath("/a/b"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_have_exact_forms(value):
    read = value_of(json.dumps(_inside.encode(value), allow_nan=False).encode())
    assert read == value and type(read) is type(value)


def test_nan_and_arrays_have_forms():
    assert math.isnan(value_of(json.dumps(_inside.encode(float("nan"))).encode()))
    numpy_less = value_of(b'{"$": "array", "v": ["<f8", [1, 1], "AAAAAAAA8D8="]}')
    assert tuple(numpy_less)[:2] == ("<f8", (1, 1)) if isinstance(numpy_less, Array) else numpy_less.tolist() == [[1.0]]


@pytest.mark.parametrize("text", [
    b"", b"nope", b'{"$": "pickle", "v": "gASVCgAAAAAAAACMBXBvc2l4lJOULg=="}', b'{"$": "eval", "v": "1"}', b'{"$": []}',
    b'{"$": "int", "v": 5}', b'{"$": "array", "v": ["|O8", [1], "AAAAAAAAAAA="]}', b'{"$": "bytes", "v": "\xc3\xa9"}',
    b'{"$": "array", "v": ["<f8", [-1], ""]}', b'{"$": "set", "v": [[]]}', b'{"$": "fraction", "v": [1, 0]}',
    b'{"$": "dict", "v": [[[], 1]]}', b'{"$": "decimal", "v": "x"}', b'{"$": "datetime", "v": null}', b"[" * 300 + b"]" * 300,
    b"[" * 200_000, b'{"$": "array", "v": 5}', b'{"$": "text", "v": "/w=="}', b'{"$": "float", "v": "1"}',
    b'{"$": "uuid", "v": 4}', b'{"$": "tuple", "v": null}', b'{"$": "timedelta", "v": [1e300, 0, 0]}',
])
def test_hostile_values_are_refused(text):
    with pytest.raises(ProtocolError):
        value_of(text)


class Calls:
    """call() and map() of one flavour."""

    def __init__(self, api):
        self.api = api

    async def call(self, function, *arguments, **options):
        from glovebox._async.functions import acall_function
        from glovebox._sync.functions import call_function
        how = {"server": self.api.server, "policy": "minimal", **options}
        if self.api.name == "sync":
            return call_function(function, arguments, **how)
        return await acall_function(function, arguments, **how)

    async def map(self, function, items, **options):
        if self.api.name == "sync":
            return glovebox.map(function, items, policy="minimal", **self.api.server, **options)
        return await glovebox.amap(function, items, policy="minimal", **self.api.server, **options)


@pytest.fixture
def calls(api):
    return Calls(api)


async def test_a_function_takes_along_what_it_refers_to(calls):
    assert await calls.call(function, 5) == 15
    kept = 7
    assert await calls.call(lambda x: x + kept, 1) == 8


async def test_values_come_back_as_they_are(calls):
    assert await calls.call(same, [b"\xff", (1, 2), decimal.Decimal("1.1")]) == [b"\xff", (1, 2), decimal.Decimal("1.1")]


def make_point():
    return Point(1, 2.5)


async def test_classes_travel_and_data_classes_come_back_as_dicts(calls):
    assert await calls.call(make_point) == {"x": 1, "y": 2.5}


def large(size):
    return b"x" * size


async def test_a_large_value_comes_back_as_a_file(calls):
    assert await calls.call(large, 3_000_000) == b"x" * 3_000_000


def fails(kind):
    if kind == "raise":
        raise ValueError("no")
    if kind == "exit":
        import os
        os._exit(3)
    if kind == "open":
        return open("/etc/hostname")
    deep = []
    for _ in range(1000):
        deep = [deep]
    return deep


@pytest.mark.parametrize("kind, name", [("raise", "ValueError"), ("exit", ""), ("open", ""), ("deep", "ValueError")])
async def test_what_fails_inside_is_a_function_error(calls, kind, name):
    with pytest.raises(FunctionError) as caught:
        await calls.call(fails, kind)
    assert name in caught.value.name and caught.value.value


def sleeps():
    import time
    time.sleep(60)


async def test_a_limit_is_reported(calls):
    with pytest.raises(FunctionError) as caught:
        await calls.call(sleeps, timeout=0.5)
    assert caught.value.name == "LimitExceeded"


class Evil:
    def __reduce__(self):
        return (exec, ("import glovebox_was_here_outside",))


def evil():
    return Evil()


async def test_no_pickle_is_read_outside_unless_it_is_asked_for(calls):
    with pytest.raises(FunctionError, match="Evil"):
        await calls.call(evil)
    with pytest.raises(ModuleNotFoundError, match="glovebox_was_here_outside"):
        await calls.call(evil, unpickle_untrusted_result=True)
    assert await calls.call(same, {1: (2,)}, unpickle_untrusted_result=True) == {1: (2,)}


async def test_packages_that_are_not_in_the_template_are_named(calls):
    with pytest.raises(FunctionError, match="no package no-such-package"):
        await calls.call(same, 1, packages=["no-such-package"])


@pytest.mark.parametrize("what", [len, print, "text", eval("lambda x: x")])
async def test_what_has_no_source(calls, what):
    if what is len:
        assert await calls.call(what, [1, 2]) == 2
    elif what is not print:
        with pytest.raises(InvalidArgumentException):
            await calls.call(what, 1)


async def test_what_cannot_be_pickled_is_reported(calls):
    with pytest.raises(InvalidArgumentException, match="argument cannot be pickled"):
        await calls.call(same, lambda: 1)


async def test_map_keeps_the_order(calls):
    assert await calls.map(function, range(6), at_once=3) == [3 * x for x in range(6)]
    assert await calls.map(function, []) == []


def odd(x):
    if x % 2:
        raise ValueError(str(x))
    return x


async def test_map_raises_or_returns_exceptions(calls):
    with pytest.raises(FunctionError, match="ValueError: 1"):
        await calls.map(odd, [0, 1, 2])
    values = await calls.map(odd, [0, 1], return_exceptions=True)
    assert values[0] == 0 and isinstance(values[1], FunctionError)


def test_app(server):
    app = glovebox.App("test", policy="minimal", socket=server.socket)

    @app.function(timeout=5, memory=128, cpu=1.0)
    def double(x):
        return 2 * x

    @app.function(image=glovebox.Image.debian_slim().pip_install("no-such"))
    def needs():
        return 1

    with app.run():
        assert double.local(1) == double(1) == double.remote(1) == 2
        assert list(double.map([1, 2, 3])) == [2, 4, 6]
        call = double.spawn(4)
        assert call.get(timeout=60) == 8
    with pytest.raises(FunctionError, match="no-such"):
        needs.remote()
    with pytest.raises(TypeError):
        double.local()


def test_arrays_and_tables(server):
    def table():
        import numpy
        import pandas
        return numpy.arange(4).reshape(2, 2), pandas.DataFrame({"a": [1, 2]}), numpy.float64(1.5)

    from glovebox._sync.functions import call_function
    array, frame, number = call_function(table, policy="data", server={"socket": server.socket})
    assert tuple(array.shape) == (2, 2) and list(frame.columns) == ["a"] and number == 1.5

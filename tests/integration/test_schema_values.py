"""What the OpenAPI document allows in the body of a request, the parser takes: the extreme values of every field, deep
into lists and objects. test_openapi.py has the opposite: what the document forbids is refused."""

import re

import pytest
from test_openapi import asked_, session_  # noqa: F401: fixtures

pytestmark = pytest.mark.usefixtures("python_template")

# Texts of which those are tried that a pattern and the lengths allow.
TEXTS = ["", "x", "/", "/x", "a" * 63, "é", "x y", "\0", "a\0b", "\n", "KILL", "SIGTERM", "9", "64", "10MiB", "7", "/" + "x" * 1023, "AP8=", "x" * 300]


def extremes(description, schema):
    """Values that `schema` allows."""
    schema = description.resolve(schema)
    if "anyOf" in schema:
        return [value for each in schema["anyOf"] for value in extremes(description, each)]
    if "enum" in schema:
        return schema["enum"]
    kinds = schema.get("type", ["any"])
    return [value for kind in ([kinds] if isinstance(kinds, str) else kinds) for value in OF_KIND[kind](description, schema)]


def texts(_, schema):
    if schema.get("contentEncoding") == "base64":
        return ["", "AP8="]
    least, most = schema.get("minLength", 0), schema.get("maxLength", 1 << 20)
    found = [*TEXTS, *("x" * size for size in (least, most) if size <= 40000)]
    return [text for text in found if least <= len(text) <= most and re.search(schema.get("pattern", ""), text)]


def numbers(_, schema):
    return [*{schema.get("minimum", -1), schema.get("maximum", 1 << 53)}]


def lists(description, schema):
    return [*([] if schema.get("minItems") else [[]]), *([each] for each in extremes(description, schema["items"]))]


def objects(description, schema):
    fields, others = schema.get("properties", {}), schema.get("additionalProperties")
    base = {name: extremes(description, fields[name])[0] for name in schema.get("required", [])}
    found = [*([base] if len(base) >= schema.get("minProperties", 0) else []), *(base | {name: value} for name, each in fields.items() for value in extremes(description, each))]
    return found + [{"a": value} for value in extremes(description, others)] if isinstance(others, dict) else found


OF_KIND = {"string": texts, "integer": numbers, "number": numbers, "array": lists, "object": objects, "boolean": lambda *_: [True, False],
           "null": lambda *_: [None], "any": lambda *_: [None, True, 0, "", [], {}]}


# What no schema says: that two fields go together or exclude each other, and names that are looked up.
OTHERWISE = ["the request has 'code' and 'command'", "the request has neither 'code' nor 'command'", "lacks its 'content'",
             "is not known here; docs/reference/output-validation.md lists the types", "which only \"mode\": \"cell\" has",
             "needs 'name' or 'pattern'", "a new folder needs a 'path'", "a move needs 'from' and 'to'", "network:1:11: ",
             "'command' is empty", "expects nothing; say what", "a terminal cannot be closed"]


def test_what_the_document_allows_is_read(asked, session):  # noqa: F811
    refused, count = [], 0
    for method, path, operation in asked.description.operations():
        request = asked.description.request_schema(operation)
        if not request:
            continue
        whole = request[1]["examples"][0]
        for key, field in request[1]["properties"].items():
            for value in extremes(asked.description, field):
                answer = asked.serving.call(method, asked.place(path), whole | {key: value})
                count += 1
                if answer.status == 201 and answer.json["id"].startswith("ses_"):
                    assert asked.serving.call("DELETE", f"/v1/sessions/{answer.json['id']}").status == 200
                said = answer.json["error"]["message"] if answer.status == 400 or answer.status >= 500 else ""
                if said and not any(each in said for each in OTHERWISE):
                    refused.append(f"{method} {path} {key}={str(value)[:60]!r}: {answer.status} {said[:200]}")
    assert not refused, "\n".join(refused)
    assert count > 300

"""described.py - holds what a daemon answers against what its OpenAPI document says of the route and the status."""

import json
import re
import time

import jsonschema

MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
DAY = 86400


def other_moments(value, name=""):
    """What an answer has of points in time that are not RFC 3339 in UTC with milliseconds, or not named `…_at`."""
    if isinstance(value, dict):
        return [found for key, each in value.items() for found in other_moments(each, key)]
    if isinstance(value, list):
        return [found for each in value for found in other_moments(each, name)]
    if isinstance(value, str):
        is_moment = re.match(r"\d{4}-\d\d-\d\d([T ]\d\d:|$)", value)
        fits = re.fullmatch(MOMENT, value) and name.endswith("_at")
        return [f"{name}: {value}"] if (is_moment or name.endswith("_at")) and not fits else []
    is_near = isinstance(value, (int, float)) and any(abs(value / unit - time.time()) < DAY for unit in (1, 1e3, 1e6, 1e9))
    return [f"{name}: {value} is near to now"] if is_near else []


def pattern_of(path):
    """{path} at the end takes the rest, as in router.c."""
    parts = [re.escape(part) for part in re.split(r"\{\w+\}", path)]
    rest = path.endswith("/{path}")
    names = len(parts) - 1
    text = parts[0]
    for i in range(names):
        text += (".*" if rest and i == names - 1 else "[^/]+") + parts[i + 1]
    return re.compile(text + r"\Z")


def least_free_first(path):
    """So that approvals/{id}:decide comes before approvals/{id}."""
    return "{path}" in path, -len(re.sub(r"\{\w+\}", "", path))


class Description:
    def __init__(self, document):
        self.document = document
        self.schemas = document["components"]["schemas"]
        self.routes = [(pattern_of(path), path) for path in sorted(document["paths"], key=least_free_first)]
        self.seen = set()
        self.validators = {}

    def operations(self):
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                yield method.upper(), path, operation

    def resolve(self, thing):
        while "$ref" in thing:
            place = self.document
            for part in thing["$ref"].split("/")[1:]:
                place = place[part]
            thing = place
        return thing

    def route(self, method, path):
        path = path.split("?")[0]
        for pattern, template in self.routes:
            if pattern.match(path) and method.lower() in self.document["paths"][template]:
                return template
        return None

    def validator(self, schema):
        key = json.dumps(schema)
        if key not in self.validators:
            self.validators[key] = jsonschema.Draft202012Validator(
                schema, resolver=jsonschema.RefResolver("", self.document), format_checker=jsonschema.FormatChecker())
        return self.validators[key]

    def complaints(self, schema, value):
        return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}"
                + "".join(f"; {inner.message[:200]}" for inner in (error.context or [])[:6])
                for error in self.validator(schema).iter_errors(value)]

    def check(self, method, path, answer):
        """What the document does not say of this answer, as texts; none if all is as it says."""
        template = self.route(method, path)
        if template is None:
            return [f"{method} {path} is not described"]
        said = self.document["paths"][template][method.lower()]["responses"]
        where = f"{method} {template} {answer.status}"
        if str(answer.status) not in said:
            return [f"{where}: this status is not described"]
        content = self.resolve(said[str(answer.status)])["content"]
        self.seen.add((method, template, answer.status))
        mime = (answer.headers["Content-Type"] or "").split(";")[0]
        if mime not in content and "*/*" not in content:
            return [f"{where}: {mime} is not described"]
        if mime != "application/json" or mime not in content:
            return []
        return [f"{where}: {each}" for each in self.complaints(content[mime]["schema"], answer.json)]

    def request_schema(self, operation):
        """Of a body of JSON: its name and itself; None if there is none."""
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        return body and (body["schema"].get("$ref", "?").split("/")[-1], self.resolve(body["schema"]))

# schema.py - checks a value against a JSON Schema, draft 2020-12, with the keywords of schema_keywords.def. gloveboxd
# has refused all other keywords, and malformed schemas, before the run began.

import re
from fractions import Fraction

STEPS_MOST = 1000000
FINDINGS_MOST = 100


class GaveUp(Exception):
    """No answer is possible; the check does not pass."""


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_whole(value):
    return is_number(value) and (isinstance(value, int) or value.is_integer())


TYPES = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "number": is_number,
    "integer": is_whole,
    "string": lambda value: isinstance(value, str),
}


def frozen(value):
    """A key that is equal only for equal values of JSON: 1 equals 1.0, and not true."""
    if isinstance(value, bool):
        return ("flag", value)
    if isinstance(value, list):
        return ("list", tuple(map(frozen, value)))
    if isinstance(value, dict):
        return ("object", frozenset((name, frozen(one)) for name, one in value.items()))
    return value


def exactly(number):
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def compiled(pattern):
    """A pattern of ECMA-262 for Python: ^ and $ match only both ends, and a dot no line end."""
    out, in_class, at = [], False, 0
    while at < len(pattern):
        sign = pattern[at]
        at += 1
        if sign == "\\":
            sign += pattern[at]
            at += 1
        elif in_class:
            in_class = sign != "]"
        elif sign == "[":
            in_class = True
        elif sign == "$":
            sign = "\\Z"
        elif sign == ".":
            sign = "[^\\n\\r\\u2028\\u2029]"
        out.append(sign)
    try:
        return re.compile("".join(out), re.ASCII)
    except (re.error, OverflowError):
        raise GaveUp("a pattern of the schema cannot be read") from None


class Schema:
    def __init__(self, root):
        self.root, self.steps, self.patterns, self.found = root, 0, {}, []
        self.names = set()
        self.collect(root)

    def collect(self, schema):
        """The names in the caller's schema: only these may appear in findings."""
        if isinstance(schema, dict):
            for word, value in schema.items():
                if word in ("properties", "dependentSchemas") and isinstance(value, dict):
                    self.names.update(value)
                elif word == "required":
                    self.names.update(value)
                if word not in ("enum", "const", "default", "examples"):
                    self.collect(value)
        elif isinstance(schema, list):
            for one in schema:
                self.collect(one)

    def findings(self, value):
        """(where, keyword) of the first mismatch."""
        try:
            self.fits(self.root, value, None, True)
        except RecursionError:
            raise GaveUp("the schema refers to itself without end") from None
        return self.found

    def pointer(self, path):
        parts = []
        while path is not None:
            path, part = path
            parts.append(str(part) if isinstance(part, int) else part if part in self.names else "*")
        return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in reversed(parts))

    def matches(self, pattern, text):
        if pattern not in self.patterns:
            self.patterns[pattern] = compiled(pattern)
        return self.patterns[pattern].search(text) is not None

    def fits(self, schema, value, path, is_told):
        self.steps += 1
        if self.steps > STEPS_MOST:
            raise GaveUp("schema and value together are more than 1000000 steps of work")
        if schema is True:
            return True
        good = True
        if schema is False:
            good = self.fails(path, "false", is_told)
        else:
            for word, wanted in schema.items():
                rule = RULES.get(word)
                if rule is None:
                    continue
                if not rule(self, schema, wanted, value, path, is_told):
                    good = False
                    if not is_told:
                        return False
        return good

    def fails(self, path, word, is_told):
        if is_told and len(self.found) <= FINDINGS_MOST:
            self.found.append((self.pointer(path), word))
        return False

    def all_fit(self, pairs, is_told):
        good = True
        for schema, value, path in pairs:
            if not self.fits(schema, value, path, is_told):
                good = False
                if not is_told or len(self.found) > FINDINGS_MOST:
                    break
        return good


RULES = {}


def rule(word, of=None):
    """A keyword for values of one type, which ignores others."""
    def keep(function):
        def applied(self, schema, wanted, value, path, is_told):
            if of is not None and not of(value):
                return True
            return function(self, schema, wanted, value, path, is_told)
        RULES[word] = applied
        return function
    return keep


def plain(word, of, holds):
    def applied(self, schema, wanted, value, path, is_told):
        return not of(value) or holds(wanted, value) or self.fails(path, word, is_told)
    RULES[word] = applied


IS = TYPES
plain("type", lambda value: True,
      lambda wanted, value: any(TYPES[one](value) for one in (wanted if isinstance(wanted, list) else [wanted])))
plain("enum", lambda value: True, lambda wanted, value: frozen(value) in [frozen(one) for one in wanted])
plain("const", lambda value: True, lambda wanted, value: frozen(value) == frozen(wanted))
plain("minimum", is_number, lambda wanted, value: value >= wanted)
plain("maximum", is_number, lambda wanted, value: value <= wanted)
plain("exclusiveMinimum", is_number, lambda wanted, value: value > wanted)
plain("exclusiveMaximum", is_number, lambda wanted, value: value < wanted)
plain("multipleOf", is_number, lambda wanted, value: (exactly(value) / exactly(wanted)).denominator == 1)
plain("minLength", IS["string"], lambda wanted, value: len(value) >= wanted)
plain("maxLength", IS["string"], lambda wanted, value: len(value) <= wanted)
plain("minItems", IS["array"], lambda wanted, value: len(value) >= wanted)
plain("maxItems", IS["array"], lambda wanted, value: len(value) <= wanted)
plain("uniqueItems", IS["array"],
      lambda wanted, value: not wanted or len({frozen(one) for one in value}) == len(value))
plain("minProperties", IS["object"], lambda wanted, value: len(value) >= wanted)
plain("maxProperties", IS["object"], lambda wanted, value: len(value) <= wanted)
plain("required", IS["object"], lambda wanted, value: all(name in value for name in wanted))
plain("dependentRequired", IS["object"],
      lambda wanted, value: all(other in value for name in wanted if name in value for other in wanted[name]))


@rule("pattern", IS["string"])
def pattern_holds(self, schema, wanted, value, path, is_told):
    return self.matches(wanted, value) or self.fails(path, "pattern", is_told)


@rule("$ref")
def reference_holds(self, schema, wanted, value, path, is_told):
    target = self.root if wanted == "#" else self.root["$defs"][wanted[len("#/$defs/"):]]
    return self.fits(target, value, path, is_told)


@rule("allOf")
def all_hold(self, schema, wanted, value, path, is_told):
    return self.all_fit(((one, value, path) for one in wanted), is_told)


@rule("anyOf")
def any_holds(self, schema, wanted, value, path, is_told):
    return any(self.fits(one, value, path, False) for one in wanted) or self.fails(path, "anyOf", is_told)


@rule("oneOf")
def one_holds(self, schema, wanted, value, path, is_told):
    return sum(self.fits(one, value, path, False) for one in wanted) == 1 or self.fails(path, "oneOf", is_told)


@rule("not")
def none_holds(self, schema, wanted, value, path, is_told):
    return not self.fits(wanted, value, path, False) or self.fails(path, "not", is_told)


@rule("if")
def branch_holds(self, schema, wanted, value, path, is_told):
    return self.fits(schema.get("then" if self.fits(wanted, value, path, False) else "else", True), value, path, is_told)


@rule("properties", IS["object"])
def properties_hold(self, schema, wanted, value, path, is_told):
    return self.all_fit(((one, value[name], (path, name)) for name, one in wanted.items() if name in value), is_told)


@rule("patternProperties", IS["object"])
def pattern_properties_hold(self, schema, wanted, value, path, is_told):
    return self.all_fit(((one, value[name], (path, name)) for pattern, one in wanted.items() for name in value
                         if self.matches(pattern, name)), is_told)


@rule("additionalProperties", IS["object"])
def other_properties_hold(self, schema, wanted, value, path, is_told):
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    return self.all_fit(((wanted, one, (path, name)) for name, one in value.items()
                         if name not in known and not any(self.matches(pattern, name) for pattern in patterns)), is_told)


@rule("propertyNames", IS["object"])
def names_hold(self, schema, wanted, value, path, is_told):
    return self.all_fit(((wanted, name, (path, name)) for name in value), is_told)


@rule("dependentSchemas", IS["object"])
def dependent_schemas_hold(self, schema, wanted, value, path, is_told):
    return self.all_fit(((one, value, path) for name, one in wanted.items() if name in value), is_told)


@rule("prefixItems", IS["array"])
def first_items_hold(self, schema, wanted, value, path, is_told):
    return self.all_fit(((one, item, (path, at)) for at, (one, item) in enumerate(zip(wanted, value))), is_told)


@rule("items", IS["array"])
def items_hold(self, schema, wanted, value, path, is_told):
    first = len(schema.get("prefixItems", ()))
    return self.all_fit(((wanted, value[at], (path, at)) for at in range(first, len(value))), is_told)


@rule("contains", IS["array"])
def contains_holds(self, schema, wanted, value, path, is_told):
    count = sum(self.fits(wanted, one, path, False) for one in value)
    if count < schema.get("minContains", 1):
        return self.fails(path, "contains", is_told)
    return count <= schema.get("maxContains", count) or self.fails(path, "maxContains", is_told)

"""Parts of the checker for output validation: its JSON Schema validator compared with an independent one, each pattern
for secrets, each type with real files."""

import gzip
import io
import itertools
import random
import sqlite3
import zipfile

import jsonschema
import pytest
from conftest import TOP

GATE = TOP / "src/engine/review/output_checkers"


@pytest.fixture(scope="module")
def gate():
    """What its files define, as they stand in one program."""
    names = {}
    for part in ("json", "schema", "types", "secrets"):
        exec(compile((GATE / f"{part}.py").read_text(), part, "exec"), names)
    return names


def rows_of(table):
    names = {"__file__": str(TOP / "tools/tables"), "__name__": "tables"}
    exec(compile((TOP / "tools/tables").read_text(), "tables", "exec"), names)
    return names["rows_of"](table, "policy")


def test_the_tables_and_the_program_have_the_same_rows(gate):
    assert {name for name, _ in rows_of("output_types")} == set(gate["KINDS"])
    assert {name for name, _ in rows_of("secret_patterns")} == {row[0] for row in gate["SECRETS"]}
    silent = {name for name, shape in rows_of("schema_keywords") if shape in ("NOTE", "DRAFT")}
    helpers = {"$defs", "then", "else", "minContains", "maxContains"}
    assert {name for name, _ in rows_of("schema_keywords")} - silent - helpers == set(gate["RULES"])


# --- the validator ---------------------------------------------------------------------------------------

VALUES = [None, True, False, 0, 1, -1, 1.0, 0.5, 3, 10**20, 1e300, 0.3, "", "a", "ab", "aé", "a\n", "\n", "1", [], [1], [1, 1], [1, True],
          [1, 1.0], [[1], [1]], ["a", 1], [1, 2, 3], [None], {}, {"a": 1}, {"a": "x"}, {"a": 1, "b": 2}, {"b": None}, {"a": {"a": 1}},
          {"x1": 1}, {"x1": "s", "a": [1, "a"]}, [{"a": 1}, {"a": 2}], {"a": []}, {"a": [0], "c": 1}, 2**53, -0.0, 4.5, 0.01]
SCHEMAS = [
    True, False, {}, {"type": "integer"}, {"type": "number"}, {"type": ["string", "null"]}, {"type": "boolean"}, {"type": "array"},
    {"type": "object"}, {"enum": [1, "a", None, [1]]}, {"enum": [False, 0.5]}, {"const": 1}, {"const": [1, True]}, {"const": {"a": 1}},
    {"const": 0}, {"const": False}, {"minimum": 1}, {"maximum": 1}, {"exclusiveMinimum": 1}, {"exclusiveMaximum": 1}, {"multipleOf": 2},
    {"multipleOf": 0.5}, {"multipleOf": 1}, {"minLength": 2}, {"maxLength": 1}, {"pattern": "^a"},
    {"pattern": "b"}, {"pattern": "^[0-9]+"}, {"minItems": 2}, {"maxItems": 1}, {"uniqueItems": True}, {"uniqueItems": False}, {"items": {"type": "integer"}},
    {"items": False}, {"prefixItems": [{"type": "integer"}, {"type": "string"}]},
    {"prefixItems": [{"const": 1}], "items": {"const": 1}}, {"prefixItems": [True, True], "items": False},
    {"contains": {"type": "integer"}}, {"contains": {"const": 1}, "minContains": 2}, {"contains": {"const": 1}, "maxContains": 1},
    {"contains": {"const": 1}, "minContains": 0}, {"minContains": 3}, {"minProperties": 2}, {"maxProperties": 1}, {"required": ["a"]},
    {"required": ["a", "b"]}, {"required": []}, {"properties": {"a": {"type": "integer"}}}, {"properties": {"a": False}},
    {"properties": {"a": True}, "additionalProperties": False}, {"additionalProperties": {"type": "integer"}},
    {"patternProperties": {"^x": {"type": "integer"}}}, {"patternProperties": {"^x": True}, "properties": {"a": True}, "additionalProperties": False},
    {"propertyNames": {"maxLength": 1}}, {"propertyNames": False}, {"dependentRequired": {"a": ["b"]}},
    {"dependentSchemas": {"a": {"required": ["b"]}}}, {"allOf": [{"type": "integer"}, {"minimum": 1}]},
    {"anyOf": [{"type": "string"}, {"minimum": 1}]}, {"oneOf": [{"type": "integer"}, {"minimum": 1}]}, {"not": {"type": "integer"}}, {"not": True},
    {"if": {"type": "integer"}, "then": {"minimum": 1}, "else": {"type": "string"}}, {"if": {"type": "object"}, "then": {"required": ["a"]}},
    {"if": {"type": "array"}, "else": {"type": "object"}}, {"then": False}, {"else": False},
    {"$defs": {"t": {"type": "integer"}}, "$ref": "#/$defs/t"}, {"$defs": {"t": {"type": "integer"}}, "items": {"$ref": "#/$defs/t", "minimum": 1}},
    {"properties": {"a": {"$ref": "#"}}, "additionalProperties": False}, {"title": "t", "description": "d", "default": 1, "examples": [1], "type": "null"},
]


def test_the_validator_answers_as_another_one_does(gate):
    cases = list(itertools.product(SCHEMAS, VALUES))
    chance = random.Random(6)
    for _ in range(3000):  # two at once, and one in the other
        one, other = chance.choice(SCHEMAS), chance.choice(SCHEMAS)
        if "$ref" in str(one) + str(other):
            continue
        mixed = chance.choice([{"allOf": [one, other]}, {"anyOf": [one, other]}, {"oneOf": [one, other]}, {"items": {"not": one}},
                               {"properties": {"a": one}, "additionalProperties": other}, {"if": one, "then": other}])
        cases.append((mixed, chance.choice(VALUES)))
    for schema, value in cases:
        ours = not gate["Schema"](schema).findings(value)
        theirs = jsonschema.Draft202012Validator(schema).is_valid(value)
        assert ours == theirs, (schema, value, ours)


# Where Python's own reading of a number or a pattern is not JSON's; the other validator takes Python's.
@pytest.mark.parametrize("schema, value, fits", [
    ({"multipleOf": 0.01}, 4.35, True), ({"multipleOf": 0.1}, 0.3, True), ({"multipleOf": 0.1}, 0.35, False),
    ({"multipleOf": 3}, 10**30, False), ({"pattern": "^a$"}, "a\n", False), ({"pattern": "^\\d$"}, "٣", False), ({"pattern": "a.b"}, "a\rb", False),
    ({"pattern": "[.]$"}, "a.", True), ({"pattern": "\\$"}, "$", True), ({"pattern": "^\\u00e9$"}, "é", True), ({"maxLength": 1}, "😀", True),
    ({"uniqueItems": True}, [{"a": 1}, {"a": 1.0}], False), ({"uniqueItems": True}, [0, False], True),
    ({"enum": [1]}, True, False), ({"const": {"a": [0]}}, {"a": [False]}, False), ({"type": "integer"}, 1e300, True),
])
def test_numbers_and_patterns_are_those_of_json(gate, schema, value, fits):
    assert (not gate["Schema"](schema).findings(value)) == fits


# --- secrets ---------------------------------------------------------------------------------------------

# Made here and worth nothing; put together so that nothing that looks for secrets finds them in this file.
A = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5m"
PLANTED = {
    "private_key": ["-----BEGIN " + "RSA PRIVATE KEY-----\nMIIE", "-----BEGIN " + "OPENSSH PRIVATE KEY-----", "-----BEGIN " + "PRIVATE KEY-----",
                    "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----"],
    "aws_access_key": ["AKIA" + "IOSFODNN7EXAMPLE"[:16].replace("7", "K").replace("9", "K"), "id=ASIA" + "ABCDEFGHIJKLMNOP,"],
    "aws_secret_key": ["aws_secret_access_key = " + (A * 2)[:40], 'AWS_SECRET_ACCESS_KEY="' + (A * 2)[:38] + '+/"'],
    "github_token": ["ghp_" + A[:36], "ghs_" + A[:36], "github_pat_" + A[:22] + "_" + A],
    "gitlab_token": ["glpat-" + A[:20]],
    "slack_token": ["xox" + "b-123456789012-" + A[:24]],
    "slack_webhook": ["https://hooks.slack.com/" + "services/T00000000/B00000000/" + A[:24]],
    "stripe_key": ["sk_" + "live_" + A[:24]],
    "google_api_key": ["AIza" + A[:35]],
    "openai_key": ["sk-" + "proj-" + A[:40], "sk-" + A[:48]],
    "anthropic_key": ["sk-" + "ant-api03-" + A[:40]],
    "npm_token": ["npm_" + A[:36]],
    "pypi_token": ["pypi-" + (A * 2)[:60]],
    "glovebox_key": ["glb_" + "0123456789abcdef" + "_" + A[:43]],
    "jwt": ["eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxIn0." + A[:43]],
    "url_password": ["postgres://user:" + "hunter22@db:5432/x", "https://me:" + "p%40ss@host.example"],
    "assigned": ["password = '" + A[:20] + "'", '{"api_key": "' + A[:24] + '"}', "export ACCESS_TOKEN=" + A[:32], "secret: " + A[:30]],
}
HARMLESS = [
    "-----BEGIN PUBLIC KEY-----\nMIIB", "-----BEGIN CERTIFICATE-----", "AKIA", "AKIAabcdefghijklmnop", "xAKIA" + "ABCDEFGHIJKLMNOP", "ghp_short",
    "sk-learn and task-1234", "risk-" + "a" * 40, "eyJust a word", "https://example.org:8080/a@b", "https://user@host/", "git@github.com:a/b.git",
    "password: ********************", "token = aaaaaaaaaaaaaaaaaaaaaaaa", "the secret of good soup is patience and more patience",
    "api_key = os.environ['API_KEY']", "password=correct-horse-battery-staple", "tokens: 12345678901234567890", "npm_config_registry=x",
    "d41d8cd98f00b204e9800998ecf8427e", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "data:image/png;base64," + A * 20, "secret_santa = ['anna', 'bert']", "0.123456789012345678901234567890",
]


def names_in(gate, text):
    return {name for _, name in gate["secrets_in"](text.encode())}


@pytest.mark.parametrize("name", PLANTED)
def test_each_pattern_finds_what_it_is_for(gate, name):
    assert name in {row[0] for row in gate["SECRETS"]}
    for secret in PLANTED[name]:
        for text in (secret, f"before {secret} behind", f"\n\n{secret}\n", f'{{"text": "line\\n{secret}\\n"}}',
                     f"\x1b[1;31m{secret}\x1b[0m", f'{{"text": "\\u001b[31m{secret}\\u001b[0m"}}', f"a \x1b[m{secret[:6]}\x1b[m{secret[6:]} b"):
            found = gate["secrets_in"](text.encode())
            assert name in {one for _, one in found}, (name, text)
            assert {one for _, one in found} <= {name, "assigned", "jwt"}, (text, found)
        assert (3, name) in gate["secrets_in"](f"a\nb\n{secret}".encode())


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_is_none(gate, text):
    assert names_in(gate, text) == set()


def test_every_pattern_has_an_example(gate):
    assert set(PLANTED) == {row[0] for row in gate["SECRETS"]}


def test_many_secrets_end(gate):
    assert len(gate["secrets_in"](("ghp_" + A[:36] + "\n").encode() * 5000)) <= 1001
    assert gate["secrets_in"](b"A" * 2000000 + b"secret" * 100000 + b"://" * 100000) == []


# --- types -----------------------------------------------------------------------------------------------

def archive(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as whole:
        for name in names:
            whole.writestr(name, "x")
    return file.getvalue()


def database(folder):
    connection = sqlite3.connect(folder / "d")
    connection.execute("create table t (a)")
    connection.commit()
    connection.close()
    return (folder / "d").read_bytes()


def files(folder):
    office = "application/vnd.openxmlformats-officedocument."
    return {
        "application/gzip": gzip.compress(b"x"),
        "application/json": b'{"a": [1, 2]}',
        "application/pdf": b"%PDF-1.7\n1 0 obj\n\x00\xff\n%%EOF\n",
        "application/vnd.apache.parquet": b"PAR1\x00\x01\x02\x03PAR1",
        office + "presentationml.presentation": archive("[Content_Types].xml", "ppt/presentation.xml"),
        office + "spreadsheetml.sheet": archive("[Content_Types].xml", "xl/workbook.xml"),
        office + "wordprocessingml.document": archive("[Content_Types].xml", "word/document.xml"),
        "application/vnd.sqlite3": database(folder),
        "application/zip": archive("a"),
        "image/gif": b"GIF89a\x01\x00\x01\x00\x00\x00\x00;",
        "image/jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00",
        "image/png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        "image/svg+xml": b'<?xml version="1.0"?>\n<!-- made -->\n<svg xmlns="http://www.w3.org/2000/svg"/>',
        "image/webp": b"RIFF\x00\x00\x00\x00WEBPVP8 ",
        "text/csv": "a,b\n1,\"x, é\"\n".encode(),
        "text/plain": "wörds, more\nwords\n".encode(),
    }


# What is of a type as well: text is text, an office document an archive.
ALSO = {"application/zip": ("office",), "text/plain": ("application/json", "image/svg+xml", "text/csv", "application/pdf"),
        "text/csv": ("application/json", "image/svg+xml", "text/plain")}


def test_each_type_takes_its_own_and_no_other(gate, tmp_path):
    given = files(tmp_path)
    assert set(given) | {"image/*"} == set(gate["KINDS"])
    for name, takes in gate["KINDS"].items():
        for other, data in given.items():
            wanted = other == name or (name == "image/*" and other.startswith("image/"))
            may = any(part in other for part in ALSO.get(name, ()))
            assert takes(data) == wanted or may, (name, other)
        for data in (b"", b"\0", b"\xff", b"\x89PNG", b"PK\3\4", b"<html><svg>", b"%PDF-1.4"):
            assert not takes(data) or name in ("text/plain", "text/csv", "application/json"), (name, data)
    assert gate["KINDS"]["text/plain"](b"") and not gate["KINDS"]["text/csv"](b"a,b\n1\n")
    assert not gate["KINDS"]["text/plain"](b"a\x1b[31m") and not gate["KINDS"]["text/plain"](b"\xc3")


def test_json_is_read_strictly(gate):
    for data in (b"", b" ", b"NaN", b"Infinity", b"-Infinity", b"1e999", b"01", b"1.", b".5", b"+1", b"'a'", b'"\x01"', b'"a', b"[1,]", b'{"a":1,}',
                 b'{"a":1,"a":2}', b"{a:1}", b"1 2", b"\xef\xbb\xbf1", b'"\xed\xa0\x80"', b"nul", b"//\n1", b"9" * 401, b"[" * 201 + b"]" * 201,
                 b'"\\ud800"', b'{"a": [{"\\uDFFF": 1}]}', b'"\\\\\\udc00"', b"1e-400", b"-0.01E-999"):
        with pytest.raises(gate["NoJson"]):
            gate["read_json"](data)
    for data in (b"1", b' {"a" : [ ] } \n', b'"\\ud83d\\ude00"', b"1e300", b"-0", b"9" * 400, b"[" * 200 + b"]" * 200, b'{"a":1,"b":{"a":2}}',
                 b'"\\\\ud800"', b"0e-999", b"-0.00", b"5e-324"):
        gate["read_json"](data)

# main.py - compares the output of a run with what is expected of it, and prints each difference in one line: rule,
# place, line, detail. It reads output that may be hostile, in a sandbox of its own.

import fnmatch
import re
import sys

TOLD_MOST = 100
DETAIL_MOST = 119
sys.setrecursionlimit(6000)


class Report:
    def __init__(self):
        self.lines, self.count = [], 0

    def add(self, rule, place, line=0, detail=""):
        self.count += 1
        text = "".join(sign if " " <= sign <= "~" else "?" for sign in detail)[:DETAIL_MOST]
        if len(self.lines) < TOLD_MOST:
            self.lines.append(f"{rule} {place} {line} {text}\n")

    def end(self):
        sys.stdout.write("".join(self.lines) + f"end {self.count}\n")
        sys.stdout.flush()


def bytes_of(name):
    with open(name, "rb") as file:
        return file.read()


def check_schema(report, place, schema, value):
    for pointer, word in Schema(schema).findings(value):
        report.add("schema", place, 0, f"{pointer or 'the whole'}: {word}")


def check_json(report, place, schema, data):
    try:
        value = read_json(data)
    except NoJson as error:
        report.add("json", place, 0, str(error))
        return
    check_schema(report, place, schema, value)


def check_content(report, place, wish, data, size):
    """`data` is None if its bytes need not be checked."""
    if size < wish.get("min_bytes", 0):
        report.add("too_small", place, 0, f"{size} bytes")
    if size > wish.get("max_bytes", size):
        report.add("too_large", place, 0, f"{size} bytes")
    if data is None:
        return
    if "type" in wish and not KINDS[wish["type"]](data):
        report.add("type", place, 0, f"expected {wish['type']}")
    if "schema" in wish:
        check_json(report, place, wish["schema"], data)


def check_stdout(report, wish, told):
    is_looked_at = "schema" in wish or "type" in wish
    if is_looked_at and told["cut"]:
        report.add("cut", "stdout")
        is_looked_at = False
    check_content(report, "stdout", wish, bytes_of("stdout") if is_looked_at else None, told["bytes"])


def values_of(results):
    """The values of the last expression: JSON if it is displayed as such, else its text, if that is JSON. Code in place
    of our interpreter may send several, and a reader might take any of them: each is checked."""
    for result in results:
        if result.get("main"):
            data = result.get("data", {})
            if "application/json" in data:
                yield data["application/json"]
            else:
                yield read_json(str(data.get("text/plain", "")).encode("utf-8", "surrogatepass"))


def check_result(report, schema):
    count = 0
    try:
        for count, value in enumerate(values_of(read_json(bytes_of("results"))), 1):
            check_schema(report, "result", schema, value)
    except NoJson as error:
        report.add("json", "result", 0, str(error))
    else:
        if count == 0:
            report.add("missing", "result")


def matcher(wish):
    """A star matches no slash."""
    if "name" in wish:
        return lambda path: path == wish["name"]
    parts = wish["pattern"].split("/")
    return lambda path: len(parts) == path.count("/") + 1 and all(map(fnmatch.fnmatchcase, path.split("/"), parts))


def check_artifacts(report, expect, told, before):
    """`before`: how many artifacts earlier expectations have."""
    artifacts = told["artifacts"]
    known = set()
    for number, wish in enumerate(expect.get("artifacts", ())):
        fits = matcher(wish)
        found = [at for at, artifact in enumerate(artifacts) if fits(artifact["path"])]
        known.update(found)
        if not found and wish.get("required", True):
            report.add("missing", f"expected.{before + number}")
        for at in found:
            is_looked_at = "schema" in wish or "type" in wish
            check_content(report, f"artifact.{at}", wish, bytes_of(f"artifact.{at}") if is_looked_at else None,
                          artifacts[at]["bytes"])
    if expect.get("others") == "forbid":
        for at in range(len(artifacts)):
            if at not in known:
                report.add("unexpected", f"artifact.{at}")
    if told["artifacts_cut"] and ("artifacts" in expect or expect.get("others") == "forbid"):
        report.add("cut", "artifacts")


def texts_in(value):
    """All texts of a JSON value, without recursion."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting.extend(one.keys())
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)


def check_secrets(report, told):
    def look(place, data, has_lines=True):
        for line, name in sorted(set((line if has_lines else 0, name) for line, name in secrets_in(data))):
            report.add("secret", place, line, name)

    look("stdout", bytes_of("stdout"))
    look("stderr", bytes_of("stderr"))
    for place, file in (("result", "results"), ("error", "error")):
        data = bytes_of(file)
        try:
            data += b"\n" + "\n".join(texts_in(read_json(data))).encode("utf-8", "surrogatepass")
        except NoJson:
            pass  # then it is used unchanged
        look(place, data, False)
    names = [artifact["path"] for artifact in told["artifacts"]] + told["skipped"]
    look("artifacts", "\n".join(names).encode("utf-8", "surrogatepass"), False)
    for at in range(len(told["artifacts"])):
        look(f"artifact.{at}", bytes_of(f"artifact.{at}"))


def main():
    report = Report()
    told = read_json(bytes_of("expected"))
    before = 0
    try:
        for expect in told["expects"]:
            if "stdout" in expect:
                check_stdout(report, expect["stdout"], told["stdout"])
            if "result" in expect:
                check_result(report, expect["result"]["schema"])
            check_artifacts(report, expect, told, before)
            before += len(expect.get("artifacts", ()))
        if any(expect.get("secrets") == "forbid" for expect in told["expects"]):
            check_secrets(report, told)
    except GaveUp as error:
        sys.stdout.write(f"failed {error}\n")
        return
    report.end()


main()

"""Receipts whose lists a program or a caller makes long: each is bounded, and the whole can be recomputed; what has
no receipt is not handed out."""

import base64
import concurrent.futures
import fcntl
import hashlib
import json
import re
import time

import jsonschema
import pytest
from conftest import TOP
from serving import Serving, state_of_its_own

SCHEMA = json.loads((TOP / "docs" / "reference" / "receipt.schema.json").read_text())
RECORD_MOST = 400 * 1024

MANY_LONG_NAMES = """
import os
os.chdir("/workspace"); q = chr(34)
for i in range(19): os.mkdir(q * 200); os.chdir(q * 200)
for i in range(256): open(str(i), "w").close()
print("x")
"""


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest(rows):
    return hashlib.sha256(canonical(rows)).hexdigest()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def mac(key, text):
    return hashlib.blake2b(text.encode(), key=key, digest_size=32).digest()


def commitments(service, execution):
    """Commits to a hash as docs/receipts.md says it."""
    secret = (service.glovebox.state / "daemon" / "opening.key").read_bytes()
    nonce = mac(secret, execution)

    def commit(item, digest):
        mask = mac(mac(nonce, item), "commitment")
        return bytes(a ^ b for a, b in zip(mask, bytes.fromhex(digest), strict=True)).hex()
    return commit


def snippet_of_page():
    """The one that computes the hash of a list that was cut."""
    text = (TOP / "docs" / "receipts.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text[text.index("### Size limits of lists"):text.index("## Key rotation")], re.DOTALL)
    return code


@pytest.fixture
def serving(glovebox, python_template):
    state_of_its_own(glovebox)
    with Serving(glovebox, tcp=False) as service:
        yield service


def receipt_of(service, result):
    answer = service.call("GET", f"/v1/receipts/{result['receipt']}")
    assert answer.status == 200 and len(answer.body) < RECORD_MOST
    payload = json.loads(base64.b64decode(answer.json["payload"]))
    jsonschema.validate(payload, SCHEMA)
    assert canonical(payload) == base64.b64decode(answer.json["payload"])
    return payload


def run(service, **request):
    answer = service.call("POST", "/v1/runs", {"policy": "data"} | request)
    assert answer.status == 200, answer.body[:300]
    return answer.json


def test_artifacts_with_long_names(serving):
    result = run(serving, code=MANY_LONG_NAMES)
    assert result["status"] == "ok" and result["stdout"] == "x\n" and len(result["artifacts"]) == 256
    payload = receipt_of(serving, result)
    said = payload["predicate"]
    commit = commitments(serving, said["execution"]["id"])
    rows = [{"bytes": one["bytes"], "name": one["path"], "commitment": commit(f"artifacts/{one['path']}", one["sha256"])}
            for one in result["artifacts"]]
    assert said["shortened"] == {"artifacts": {"count": 256, "sha256": digest(rows)}}
    page = {"hashlib": hashlib, "json": json, "result": result, "predicate": said,
            "secret": (serving.glovebox.state / "daemon" / "opening.key").read_bytes()}
    exec(snippet_of_page(), page)  # noqa: S102
    assert page["whole"] == said["shortened"]["artifacts"]["sha256"]
    listed = said["artifacts"]
    assert 0 < len(listed) < 256 and listed == rows[:len(listed)] and len(canonical(listed)) <= 32 * 1024 + 2
    subjects = {one["name"]: one["digest"]["commitment"] for one in payload["subject"] if "artifact" in one["name"]}
    assert subjects == {f"artifact/{i}": one["commitment"] for i, one in enumerate(listed)}


def test_inputs_with_long_paths(serving):
    folder = "/".join(["d" * 240] * 15)
    files = {f"{folder}/{i:04}-{'x' * 150}": str(i).encode() for i in range(1024)}
    request = [{"path": path, "content": data.decode()} for path, data in files.items()]
    code = "print(1)"
    result = run(serving, code=code, files=request, limits={"inodes": 16384})
    assert result["status"] in ("ok", "limit"), result
    said = receipt_of(serving, result)["predicate"]
    commit = commitments(serving, said["execution"]["id"])
    rows = [{"bytes": len(code), "name": "code", "commitment": commit("inputs/code", sha256(code.encode()))}]
    rows += [{"bytes": len(data), "name": f"file/{path}", "commitment": commit(f"inputs/file/{path}", sha256(data))}
             for path, data in files.items()]
    assert said["shortened"]["inputs"] == {"count": 1025, "sha256": digest(rows)}
    assert said["inputs"] == rows[:len(said["inputs"])] and len(said["inputs"]) > 1


def test_many_variables(serving):
    names = [f"N{i:04}{'V' * 300}" for i in range(128)]
    result = run(serving, code="print(1)", env=dict.fromkeys(names, "secret"))
    said = receipt_of(serving, result)["predicate"]
    assert said["shortened"]["environment_names"] == {"count": 128, "sha256": digest(names)}
    assert said["environment_names"] == names[:len(said["environment_names"])]


def test_short_lists_are_whole(serving):
    result = run(serving, code="open('a', 'w').write('b')", env={"A": "b"})
    said = receipt_of(serving, result)["predicate"]
    assert said["shortened"] == {} and len(said["artifacts"]) == len(said["inputs"]) == 1


def counted(service, name):
    for line in service.call("GET", "/metrics").body.decode().splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise AssertionError(f"no metric {name}")


@pytest.mark.parametrize("times", [1, 100000])  # some bytes; and so many that they are made ready beside the loop
def test_what_cannot_be_recorded_is_not_handed_out(serving, glovebox, times):
    """Another writer holds the lock of the log for longer than a record is waited for."""
    code = ("import time; open('kept.txt', 'w').write('kept'); "
            f"print('secret' * {times}); time.sleep(2); print(undefined)")
    with open(glovebox.state / "daemon" / "log" / "lock", "rb+") as lock:
        with concurrent.futures.ThreadPoolExecutor() as threads:
            answer = threads.submit(run, serving, code=code)
            time.sleep(1)
            fcntl.flock(lock, fcntl.LOCK_EX)
            result = answer.result()
        fcntl.flock(lock, fcntl.LOCK_UN)
    assert result["status"] == "lost" and result["receipt"] is None and result["exit_code"] is None
    assert result["stdout"] == result["stderr"] == "" and result["artifacts"] == [] and result["results"] == []
    assert "no output of this run is handed out" in result["error"]["value"], result["error"]
    assert serving.call("GET", f"/v1/artifacts/sha256:{sha256(b'kept')}").status == 404
    assert counted(serving, "glovebox_receipts_failed_total") == 1
    assert run(serving, code="print(2)")["stdout"] == "2\n"
    found = glovebox("log", "search", "--json", result["id"])
    told = [json.loads(line) for line in found.stdout.splitlines()]
    assert len(told) == 1, found.stdout
    assert glovebox("log", "verify").returncode == 0


def test_a_key_may_add_so_much_to_the_log(glovebox, python_template):
    """Runs, sessions and programs are refused with the numbers; the sum outlives a restart."""
    state_of_its_own(glovebox)
    refused = None
    with Serving(glovebox, "--key-log-mib-per-day", "1") as service:
        key = service.key("--scope", "run,sessions,admin")
        other = service.key("--scope", "run")
        session = service.call("POST", "/v1/sessions", {"policy": "data"}, key=key).json["id"]
        assert service.call("POST", f"/v1/sessions/{session}/contexts/python/run", {"code": "1"}, key=key).status == 200

        def added():
            return next(one["log_bytes_today"] for one in service.call("GET", "/v1/status").json["keys"] if one["id"] == key["id"])

        before = added()
        assert service.call("POST", f"/v1/sessions/{session}/checkpoints", {}, key=key).status == 201
        assert added() > before, "events of checkpoints count too"
        for _ in range(40):
            refused = service.call("POST", "/v1/runs", {"policy": "data", "code": MANY_LONG_NAMES}, key=key)
            if refused.status != 200:
                break
        assert refused.status == 429 and refused.json["error"]["code"] == "quota"
        assert "may add 1048576" in refused.json["error"]["message"] and int(refused.headers["Retry-After"]) > 0
        for path, body in (("/v1/sessions", {"policy": "data"}),
                           (f"/v1/sessions/{session}/processes", {"command": ["/bin/true"]}),
                           (f"/v1/sessions/{session}/checkpoints", {}),
                           (f"/v1/sessions/{session}/contexts/python/run", {"code": "1"})):
            assert service.call("POST", path, body, key=key).status == 429, path
        assert service.call("POST", "/v1/runs", {"policy": "data", "code": "1"}, key=other).status == 200
    with Serving(glovebox, "--key-log-mib-per-day", "1") as service:
        assert service.call("POST", "/v1/runs", {"policy": "data", "code": "1"}, key=key).status == 429

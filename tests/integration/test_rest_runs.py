"""Asynchronous runs, idempotency, lists of runs, resumed streams, artifacts, and general rules of HTTP."""

import contextlib
import concurrent.futures
import io
import json
import re
import socket
import subprocess
import sys
import time
import uuid
import zipfile

import pytest
from conftest import BUILD, TOP, Glovebox
from serving import Serving, state_of_its_own

ASYNC = {"Prefer": "respond-async"}


@pytest.fixture(scope="module")
def serving(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("r"))
    state_of_its_own(glovebox)
    with Serving(glovebox, "--no-keys") as started:
        yield started


def request(code, **more):
    return {"code": code, "language": "python", "policy": "minimal"} | more


def begin(serving, code, headers=None, **more):
    """The id of a run that nobody waits for."""
    answer = serving.call("POST", "/v1/runs", request(code, **more), headers=ASYNC | (headers or {}))
    assert answer.status == 202, answer.body
    assert answer.headers["Location"] == f"/v1/runs/{answer.json['id']}" == answer.json["url"]
    assert answer.headers["Preference-Applied"] == "respond-async"
    return answer.json["id"]


def result_of(serving, run):
    answer = serving.call("GET", f"/v1/runs/{run}?wait=60")
    assert answer.status == 200, answer.body
    return answer.json


def events(body):
    """[(name, data, id)] of a stream."""
    found = []
    for block in body.decode().split("\n\n")[:-1]:
        if not block.startswith(":"):
            name, data, number = block.split("\n")
            found.append((name[7:], json.loads(data[6:]), number[4:]))
    return found


class TestWaiting:
    def test_runs_can_be_started_without_waiting(self, serving):
        run = begin(serving, "import time; time.sleep(0.5); print(42)")
        assert serving.call("GET", f"/v1/runs/{run}").json["status"] in ("queued", "building", "loading", "running")
        assert result_of(serving, run)["stdout"] == "42\n"

    def test_patience_has_an_end(self, serving):
        run = begin(serving, "import time; time.sleep(9)")
        assert serving.call("GET", f"/v1/runs/{run}?wait=1").json["status"] == "running"
        assert serving.call("DELETE", f"/v1/runs/{run}").json["status"] == "cancelled"

    def test_a_client_may_wait_for_a_moment_first(self, serving):
        quick = serving.call("POST", "/v1/runs", request("print(1)"), headers={"Prefer": "respond-async, wait=30"})
        assert quick.status == 200 and quick.json["stdout"] == "1\n"

    @pytest.mark.parametrize("wait", ["-1", "x", "1e3", "301", ""])
    def test_waiting_is_bounded(self, serving, wait):
        run = begin(serving, "1")
        assert serving.call("GET", f"/v1/runs/{run}?wait={wait}").status == 400


class TestOnce:
    def test_a_key_begins_one_run(self, serving):
        key = {"Idempotency-Key": str(uuid.uuid4())}
        body = request("import os; print(os.urandom(8).hex())")
        first = serving.call("POST", "/v1/runs", body, headers=key)
        again = serving.call("POST", "/v1/runs", body, headers=key)
        assert first.json == again.json
        assert "Idempotency-Replayed" not in first.headers and again.headers["Idempotency-Replayed"] == "true"

    def test_also_at_the_same_time(self, serving):
        key = {"Idempotency-Key": str(uuid.uuid4())}
        body = request("import os, time; time.sleep(0.3); print(os.urandom(8).hex())")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: serving.call("POST", "/v1/runs", body, headers=key), range(8)))
        assert len({answer.json["id"] for answer in answers}) == 1
        assert len({answer.json["stdout"] for answer in answers}) == 1

    def test_another_body_is_a_conflict(self, serving):
        key = {"Idempotency-Key": str(uuid.uuid4())}
        serving.call("POST", "/v1/runs", request("1"), headers=key)
        answer = serving.call("POST", "/v1/runs", request("2"), headers=key)
        assert answer.status == 409 and "another body" in answer.json["error"]["message"]

    def test_a_run_with_a_key_outlives_its_connection(self, serving):
        key = str(uuid.uuid4())
        body = json.dumps(request("import time; time.sleep(1); print('still here')")).encode()
        newest = serving.run("1").json["id"]
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(serving.socket)
        peer.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n"
                     % (key.encode(), len(body)) + body)
        while serving.call("GET", "/v1/runs?limit=1").json["runs"][0]["id"] == newest:
            time.sleep(0.02)
        peer.close()
        answer = serving.call("POST", "/v1/runs", body, headers={"Idempotency-Key": key})
        assert answer.json["stdout"] == "still here\n"

    def test_a_request_that_is_refused_takes_no_key(self, serving):
        key = {"Idempotency-Key": str(uuid.uuid4())}
        assert serving.call("POST", "/v1/runs", request("1", policy="no-such"), headers=key).status == 404
        assert serving.call("POST", "/v1/runs", request("print(3)"), headers=key).json["stdout"] == "3\n"

    @pytest.mark.parametrize("key", ["", "a b", "x" * 256])
    def test_keys_are_plain(self, serving, key):
        assert serving.call("POST", "/v1/runs", request("1"), headers={"Idempotency-Key": key}).status == 400


class TestPages:
    def test_every_run_is_on_one_page(self, serving):
        made = {serving.run("1").json["id"] for _ in range(7)}
        seen, cursor = [], ""
        while cursor is not None:
            page = serving.call("GET", f"/v1/runs?limit=3{cursor and '&cursor='}{cursor}").json
            seen += [row["id"] for row in page["runs"]]
            assert len(page["runs"]) <= 3
            cursor = page["next_cursor"]
            serving.run("2")  # what comes in between shifts no page
        assert len(seen) == len(set(seen)) and made <= set(seen)

    def test_a_status_chooses(self, serving):
        run = serving.run("raise SystemExit(3)").json["id"]
        said = serving.call("GET", "/v1/runs?status=nosuch")
        assert said.status == 400 and "it is one of queued, building, " in said.json["error"]["message"], said
        rows = serving.call("GET", "/v1/runs?status=error").json["runs"]
        assert rows[0]["id"] == run and {row["status"] for row in rows} == {"error"} and rows[0]["fault"] == "code"

    @pytest.mark.parametrize("query", ["limit=1001", "limit=x", "cursor=-1", "cursor=x", "status=good"])
    def test_what_is_no_page(self, serving, query):
        assert serving.call("GET", f"/v1/runs?{query}").status == 400


class TestStreams:
    CODE = "import sys\nfor i in range(200): print('x' * 100, i)\nprint('e', file=sys.stderr); open('a', 'w').write('1')"

    def test_a_stream_goes_on_behind_any_event(self, serving):
        run = begin(serving, self.CODE)
        result_of(serving, run)
        whole = events(serving.call("GET", f"/v1/runs/{run}/events").body)
        assert [name for name, _, _ in whole][-1] == "end" and len(whole) >= 5
        text = "".join(data["data"] for name, data, _ in whole if name == "stdout")
        assert text == result_of(serving, run)["stdout"]
        for place, (_, _, number) in enumerate(whole):
            for how in ({"path": f"?from={number}"}, {"headers": {"Last-Event-ID": number}}):
                rest = serving.call("GET", f"/v1/runs/{run}/events{how.get('path', '')}", headers=how.get("headers"))
                assert events(rest.body) == whole[place + 1:]

    def test_a_stream_that_broke_off_misses_nothing(self, serving):
        run = begin(serving, "import time\nfor i in range(30): print(i, flush=True); time.sleep(0.03)")
        seen, last = [], "0"
        while not seen or seen[-1][0] != "end":
            stream = serving.open("GET", f"/v1/runs/{run}/events", headers={"Last-Event-ID": last})
            block = b""
            while block.count(b"\n\n") < 2:
                line = stream.readline()
                if not line:
                    break
                block += line
            stream.close()
            seen += events(block)
            last = seen[-1][2]
        assert "".join(data["data"] for name, data, _ in seen if name == "stdout") == \
            "".join(f"{i}\n" for i in range(30))

    @pytest.mark.parametrize("number", ["x", "1", "1-2-3", "-1-0-0-0-0-0", "1-0-0-0-0-99999999999999999999", "1-0-0-0-0-0-0"])
    def test_what_is_no_event(self, serving, number):
        run = serving.run("1").json["id"]
        assert serving.call("GET", f"/v1/runs/{run}/events?from={number}").status == 400

    def test_an_event_id_beyond_the_end_is_harmless(self, serving):
        run = serving.run("print(1)").json["id"]
        answer = serving.call("GET", f"/v1/runs/{run}/events?from=1-999999-999999-999999-999999-999999")
        assert events(answer.body)[-1][0] == "end"


class TestFiles:
    @pytest.fixture(scope="class")
    def made(self, serving):
        code = ("import os\nopen('a.html', 'w').write('<script>alert(1)</script>')\nos.makedirs('d/e')\n"
                "open('d/e/\\u00fc.bin', 'wb').write(bytes(range(256)) * 4000)\nopen('empty', 'w')")
        result = serving.run(code).json
        return result | {"by_path": {artifact["path"]: artifact for artifact in result["artifacts"]}}

    def test_a_page_is_never_shown(self, serving, made):
        answer = serving.call("GET", made["by_path"]["a.html"]["url"])
        assert answer.headers["Content-Disposition"] == "attachment"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in answer.headers["Content-Security-Policy"]

    @pytest.mark.parametrize("asked, part", [
        ("bytes=0-9", slice(0, 10)), ("bytes=1023990-", slice(1023990, None)), ("bytes=-5", slice(-5, None)),
        ("bytes=1023999-9999999", slice(1023999, None))])
    def test_parts(self, serving, made, asked, part):
        whole = bytes(range(256)) * 4000
        answer = serving.call("GET", made["by_path"]["d/e/ü.bin"]["url"], headers={"Range": asked})
        assert answer.status == 206 and answer.body == whole[part]
        first, _, _ = part.indices(len(whole))
        assert answer.headers["Content-Range"] == f"bytes {first}-{first + len(answer.body) - 1}/{len(whole)}"

    def test_parts_that_are_not_there(self, serving, made):
        url = made["by_path"]["a.html"]["url"]
        answer = serving.call("GET", url, headers={"Range": "bytes=1000-"})
        assert answer.status == 416 and answer.headers["Content-Range"] == "bytes */25"
        assert answer.json["error"]["code"] == "range"
        assert serving.call("GET", made["by_path"]["empty"]["url"]).body == b""

    def test_what_a_client_has_is_not_sent_again(self, serving, made):
        url = made["by_path"]["a.html"]["url"]
        tag = serving.call("GET", url).headers["ETag"]
        answer = serving.call("GET", url, headers={"If-None-Match": tag})
        assert answer.status == 304 and answer.body == b""
        assert serving.call("GET", url, headers={"If-None-Match": '"other"'}).status == 200
        part = serving.call("GET", url, headers={"Range": "bytes=0-0", "If-Range": '"other"'})
        assert part.status == 200 and len(part.body) == 25

    def test_head_has_the_size_and_no_body(self, serving, made):
        answer = serving.call("HEAD", made["by_path"]["a.html"]["url"])
        assert answer.status == 200 and answer.headers["Content-Length"] == "25" and answer.body == b""

    def test_all_of_them_in_one_archive(self, serving, made):
        answer = serving.call("GET", f"/v1/runs/{made['id']}/artifacts.zip")
        assert answer.status == 200 and int(answer.headers["Content-Length"]) == len(answer.body)
        archive = zipfile.ZipFile(io.BytesIO(answer.body))
        assert archive.testzip() is None and set(archive.namelist()) == set(made["by_path"])
        assert archive.read("d/e/ü.bin") == bytes(range(256)) * 4000
        assert serving.call("HEAD", f"/v1/runs/{made['id']}/artifacts.zip").headers["Content-Length"] == \
            answer.headers["Content-Length"]

    def test_an_archive_of_nothing(self, serving):
        run = serving.run("1").json["id"]
        assert zipfile.ZipFile(io.BytesIO(serving.call("GET", f"/v1/runs/{run}/artifacts.zip").body)).namelist() == []

    def test_an_archive_of_a_run_with_nested_values(self, serving):
        code = "open('a.txt', 'w').write('a')\nx = 1\nfor _ in range(25): x = [x]\nx"
        run = serving.call("POST", "/v1/runs", {"code": code, "mode": "cell"}).json
        assert "application/json" in run["results"][0]["data"]
        answer = serving.call("GET", f"/v1/runs/{run['id']}/artifacts.zip")
        assert zipfile.ZipFile(io.BytesIO(answer.body)).namelist() == ["a.txt"]

    def test_an_archive_of_a_run_that_goes_on(self, serving):
        run = begin(serving, "import time; time.sleep(9)")
        assert serving.call("GET", f"/v1/runs/{run}/artifacts.zip").status == 409
        serving.call("DELETE", f"/v1/runs/{run}")


class TestProtocol:
    @pytest.mark.parametrize("method, path, status, allow", [
        ("PUT", "/v1/runs", 405, "GET, HEAD, POST, OPTIONS"),
        ("OPTIONS", "/v1/runs", 204, "GET, HEAD, POST, OPTIONS"),
        ("POST", "/v1/limits", 405, "GET, HEAD, OPTIONS"),
        ("OPTIONS", "/v1/nothing", 404, None),
        ("OPTIONS", "*", 204, "DELETE, GET, HEAD, PATCH, POST, PUT, OPTIONS"),
        ("OPTIONS", "http://localhost", 204, "DELETE, GET, HEAD, PATCH, POST, PUT, OPTIONS"),
        ("GET", "*", 404, None),
    ])
    def test_methods(self, serving, method, path, status, allow):
        answer = serving.call(method, path)
        assert answer.status == status and answer.headers["Allow"] == allow
        if status > 400:
            assert answer.json["error"]["code"] in ("method", "not_found")

    @pytest.mark.parametrize("method, path, headers, status, code", [
        ("POST", "/v1/runs", {"Content-Type": "application/xml"}, 415, "media_type"),
        ("POST", "/v1/runs", {"Content-Encoding": "gzip"}, 415, "media_type"),
        ("GET", "/v1/limits", {"Accept": "text/html"}, 406, "not_acceptable"),
        ("GET", "/v1/limits", {"Accept": "text/event-stream"}, 406, "not_acceptable"),
        ("GET", "/v1/limits", {"X-Long": "x" * 20000}, 431, "header_too_large"),
        ("POST", "/v1/runs", {"Content-Length": "99999999999"}, 413, "too_large"),
    ])
    def test_what_is_refused_by_its_header(self, serving, method, path, headers, status, code):
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(30)
        peer.connect(serving.socket)
        lines = "".join(f"{name}: {value}\r\n" for name, value in ({"Content-Length": "2"} | headers).items())
        peer.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n{{}}".encode())
        answer = b""
        while b"}}" not in answer:
            block = peer.recv(65536)
            assert block, answer
            answer += block
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        error = json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]
        assert error["code"] == code and error["message"] and error["request_id"]

    @pytest.mark.parametrize("request_, status, says", [
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400, b"HTTP/1.1 needs a Host"),
        (b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n", 200, b'"status":"ok"'),
        (b"GET /healthz HTTP/1.0\r\n\r\n", 403, b"is not this machine"),
        (b"GET http://localhost/healthz HTTP/1.1\r\n\r\n", 400, b"HTTP/1.1 needs a Host"),
        (b"GET /heal thz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, b"the target has blanks"),
        (b"GET /heal\x01thz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, b"the target has blanks"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: b\rX-B: c\r\n\r\n", 400, b"has a control character"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: b\x1bc\r\n\r\n", 400, b"has a control character"),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: b\tc\r\nConnection: close\r\n\r\n", 200, b'"status":"ok"'),
        (b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n", 400, b""),
        (b"POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 404, b"nothing is served"),
        (b"GET /healthz HTTP/1.1\r\n: b\r\nHost: localhost\r\n\r\n", 400, b"is not a header name"),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 204, b""),
    ])
    def test_one_request_one_head(self, serving, request_, status, says):
        """However wrong it is; and after a refusal nothing of it is taken for another request."""
        peer = socket.create_connection(("127.0.0.1", serving.port), timeout=30)
        peer.sendall(request_)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while block := peer.recv(65536):
                answer += block
        assert answer.count(b"\r\nDate: ") == 1 and answer.startswith(b"HTTP/1.") and says in answer, answer
        assert answer[9:12] == b"%d" % status, answer

    def test_limits_of_libmicrohttpd(self, serving):
        """Decision 23: a later version that is better makes this fail, and the page says less."""
        def answer_to(request, wait):
            peer = socket.socket(socket.AF_UNIX)
            peer.settimeout(wait)
            peer.connect(serving.socket)
            peer.sendall(request + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b""
            with contextlib.suppress(TimeoutError, ConnectionResetError):
                while block := peer.recv(65536):
                    answer += block
            peer.close()
            return answer

        nameless = answer_to(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n: b\r\nGET /readyz HTTP/1.1", 30)
        assert nameless.count(b"\r\nDate: ") == 2, nameless
        for count, is_answered in ((300, True), (600, False)):
            query = b"&".join(b"a%d=1" % i for i in range(count))
            assert bool(answer_to(b"GET /healthz?" + query + b" HTTP/1.1", 5)) == is_answered
        begun = b"POST /v1/runs HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: localhost\r\n\r\n"
        for size, status in ((b"7fffffffffffffff", b""), (b"10000000000000000", b"HTTP/1.1 413 ")):
            assert answer_to(begun + size, 2)[:13] == status, size

    @pytest.mark.parametrize("accept", ["*/*", "application/json", "text/html, application/*;q=0.8", "application/json;q=1"])
    def test_what_is_accepted(self, serving, accept):
        assert serving.call("GET", "/v1/limits", headers={"Accept": accept}).status == 200

    def test_a_request_keeps_its_name(self, serving):
        assert serving.call("GET", "/healthz", headers={"X-Request-Id": "my-1.2_3"}).headers["X-Request-Id"] == "my-1.2_3"
        for bad in ("a b", "x" * 65, "\"", "a\xe9"):
            given = serving.call("GET", "/healthz", headers={"X-Request-Id": bad}).headers["X-Request-Id"]
            assert given.startswith("req_")
        failed = serving.call("GET", "/v1/nothing", headers={"X-Request-Id": "abc"})
        assert failed.json["error"]["request_id"] == "abc"


class TestCrowds:
    def test_silent_connections_are_closed_for_new_ones(self, serving):
        """More connections than there may be, all in the middle of a header: others are served."""
        peers = []
        for _ in range(600):
            peer = socket.socket(socket.AF_UNIX)
            peer.connect(serving.socket)  # without a timeout: it waits where the backlog is full
            peer.settimeout(20)
            peer.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
            peers.append(peer)
        assert serving.run("print(1)").json["stdout"] == "1\n"
        for peer in peers:
            peer.close()

    def test_a_client_that_never_reads_delays_no_other(self, serving):
        run = begin(serving, "print('x' * 900000)")
        result_of(serving, run)
        peers = []
        for _ in range(40):
            peer = socket.socket(socket.AF_UNIX)
            peer.connect(serving.socket)
            peer.sendall(f"GET /v1/runs/{run}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 20)
            peers.append(peer)
        assert serving.run("print(2)").json["stdout"] == "2\n"
        for peer in peers:
            peer.close()


def validator(folder):
    """openapi-spec-validator, which Debian does not have: it is kept in `folder`. None if it cannot be had."""
    check = [sys.executable, "-m", "openapi_spec_validator"]
    path = {"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin", "HOME": "/tmp"}
    for install in (False, True):
        if install:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, "openapi-spec-validator"]
            try:
                if subprocess.run(pip, capture_output=True, timeout=60, check=False).returncode != 0:
                    return None
            except (OSError, subprocess.TimeoutExpired):
                return None
        if subprocess.run([*check, "--version"], env=path, capture_output=True, check=False).returncode == 0:
            return lambda document: subprocess.run([*check, document], env=path, capture_output=True, check=False)
    return None


class TestDocuments:
    def test_every_operation_is_described(self, serving):
        answer = serving.call("GET", "/openapi.json", tcp=True)  # no key is needed
        document = answer.json
        assert answer.status == 200 and document["openapi"] == "3.1.0"
        names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
        assert len(names) == len(set(names)) and "createRun" in names
        limits = {row["name"]: row for row in serving.call("GET", "/v1/limits").json["limits"]}
        described = document["components"]["schemas"]["Limits"]["properties"]
        assert {name: (row["min"], row["max"]) for name, row in limits.items()} == \
            {name: (row["minimum"], row["maximum"]) for name, row in described.items()}
        result = serving.run("print(1)").json
        assert set(document["components"]["schemas"]["RunResult"]["required"]) == set(result)
        text = answer.body.decode()
        for name in set(text.split("#/components/schemas/")[1:]):
            assert name.split('"')[0] in document["components"]["schemas"]

    def test_what_is_said_of_a_query_holds(self, serving):
        document = serving.call("GET", "/openapi.json").json
        asked = 0
        for path, operations in document["paths"].items():
            if "get" not in operations or "{" in path:
                continue
            parameters = [each for each in operations["get"]["parameters"] if each["in"] == "query"]
            if any(each["required"] for each in parameters):
                answer = serving.call("GET", path)
                assert answer.status == 400 and "the query lacks" in answer.json["error"]["message"], path
            for each in parameters:
                schema = each["schema"]
                wrong = ["AAA", ""] if "enum" in schema or schema["type"] == "integer" else []
                wrong += [schema["maximum"] + 1] if "maximum" in schema else []
                wrong += [schema["minimum"] - 1] if "minimum" in schema else []
                for value in wrong:
                    asked += 1
                    assert serving.call("GET", f"{path}?{each['name']}={value}").status == 400, (path, each, value)
                for value in schema.get("enum", []) if path != "/v1/network/connections" else []:  # a stream has no end
                    assert serving.call("GET", f"{path}?{each['name']}={value}").status == 200 or each["required"]
        assert asked > 20

    def test_every_parameter_that_is_read_is_described(self):
        read, described = {}, set()
        for source in (TOP / "src/doors").rglob("*.c"):
            text = source.read_text()
            for name in re.findall(r'exchange_query(?:_count)?\(exchange, "(\w+)"', text) + re.findall(r'is_set\(exchange, "(\w+)"', text):
                read[name] = source.name
            described |= set(re.findall(r'\{ "(\w+)", IN_QUERY', text))
        assert read and set(read) <= described, {name: where for name, where in read.items() if name not in described}

    def test_a_validator_finds_nothing(self, serving, tmp_path):
        check = validator(BUILD / "openapi-spec-validator")
        if not check:
            pytest.skip("openapi-spec-validator cannot be installed here")
        (tmp_path / "openapi.json").write_bytes(serving.call("GET", "/openapi.json").body)
        done = check(tmp_path / "openapi.json")
        assert done.returncode == 0, done.stdout + done.stderr

    def test_metrics_are_read_as_prometheus_does(self, serving):
        parser = pytest.importorskip("prometheus_client.parser")
        serving.run("import os, socket\nfor call in (lambda: socket.create_connection(('192.0.2.1', 80)), lambda: os.chroot('/')):\n"
                    "    try: call()\n    except OSError: pass\nos.symlink('x', 'link')\nos.mkfifo('pipe')\nprint(1)")
        serving.run("while True: pass", limits={"wall_ms": 100})
        answer = serving.call("GET", "/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        found = {}
        for family in parser.text_string_to_metric_families(answer.body.decode()):
            assert family.documentation
            for sample in family.samples:
                found[sample.name, *sorted(sample.labels.values())] = sample.value
        assert found["glovebox_runs_total", "ok"] >= 1 and found["glovebox_limit_ends_total", "wall"] >= 1
        for layer, reason in (("network", "no_network"), ("syscall", "call"), ("artifact", "link"), ("artifact", "special")):
            assert found["glovebox_denials_total", *sorted((layer, reason))] >= 1, reason
        assert found["glovebox_denials_total", "precheck", "unchecked"] == 0
        assert found["glovebox_queue_seconds_bucket", "+Inf"] == found["glovebox_queue_seconds_count",]
        assert found["glovebox_http_requests_total", "2xx"] >= 2 and found["glovebox_slots",] == 8


def test_a_wall_limit_of_a_program_that_slept_says_so(serving):
    slept = serving.run("import time; time.sleep(60)", limits={"wall_ms": 400}).json
    assert slept["status"] == "limit" and "for the rest it slept, waited, or got no processor" in json.dumps(slept), slept


@pytest.mark.parametrize("more", [{}, {"cold": True}, {"mode": "cell"}], ids=["forked", "executed", "cell"])
def test_a_limit_at_its_least_is_the_programs_and_no_fault_of_glovebox(serving, more):
    rows = serving.call("GET", "/v1/limits").json["limits"]
    least = {row["name"]: row["min"] for row in rows if row["name"] not in ("wall_ms", "cpu_ms", "cpus")}
    assert least["open_files"] == 16 and least["processes"] == 1
    for limits in [{name: value} for name, value in least.items()] + [least]:
        result = serving.run("print(1)", limits=limits, **more).json
        assert (result["status"], result["exit_code"]) == ("ok", 0), (limits, result)
    result = serving.run("f = []\ntry:\n  while True: f.append(open('/dev/null'))\nexcept OSError as why: print(why.errno, len(f) < 16)",
                         limits={"open_files": 16}, **more).json
    assert result["stdout"] == "24 True\n", result

"""OpenTelemetry: a span of each run and cell is sent to the operator's collector, as part of the caller's trace;
nothing waits for a collector that does not accept spans."""

import base64
import json
import time

import pytest
from conftest import Glovebox
from serving import Serving, state_of_its_own
from test_notify import Receiver

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


@pytest.fixture(name="place", scope="module")
def place_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("traces"))
    state_of_its_own(glovebox)
    collector = Receiver()
    with Serving(glovebox, "--otlp-endpoint", f"http://127.0.0.1:{collector.port}") as serving:
        serving.collector = collector
        yield serving
    collector.close()


def run(place, code="pass", **headers):
    return place.call("POST", "/v1/runs", {"policy": "minimal", "language": "python", "code": code}, headers=headers).json


def spans(place, count):
    """The next spans, in the order of their ends; a request has many, of one second."""
    found = []
    while len(found) < count:
        path, headers, body = place.collector.take()
        assert (path, headers["Content-Type"]) == ("/v1/traces", "application/json")
        told, = json.loads(body)["resourceSpans"]
        names = {one["key"]: one["value"]["stringValue"] for one in told["resource"]["attributes"]}
        assert names["service.name"] == "glovebox" and names["service.version"]
        found += told["scopeSpans"][0]["spans"]
    assert len(found) == count, found
    return found


def attributes(span):
    return {one["key"].removeprefix("glovebox."): one["value"].get("stringValue") or int(one["value"]["intValue"])
            for one in span["attributes"]}


def test_a_run_is_a_span_of_the_callers_trace(place):
    before = time.time_ns()
    done = run(place, "import time; time.sleep(.2)", traceparent=f"00-{TRACE}-{PARENT}-01", tracestate="vendor=1")
    span, = spans(place, 1)
    assert (span["traceId"], span["parentSpanId"], span["name"], span["kind"]) == (TRACE, PARENT, "run", 2)
    assert len(span["spanId"]) == 16 and span["spanId"] != PARENT and "status" not in span
    began, ended = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
    assert ended - began >= 200_000_000 and before - 10**7 <= began <= ended <= time.time_ns()
    told = attributes(span)
    assert (told["run"], told["status"], told["policy"]) == (done["id"], "ok", "minimal")
    assert told["cpu_us"] > 0 and "session" not in told and "limit" not in told
    envelope = place.call("GET", f"/v1/receipts/{done['receipt']}").json
    claimed = json.loads(base64.b64decode(envelope["payload"]))["predicate"]["claimed"]
    assert claimed["traceparent"].split("-")[1] == TRACE and claimed["tracestate"] == "vendor=1" and claimed["tool"] is None


def test_runs_of_a_second_go_together_and_without_a_caller_each_is_a_trace(place):
    for _ in range(3):
        run(place, "1/0")
    told = spans(place, 3)
    assert len({span["traceId"] for span in told}) == 3 and not any("parentSpanId" in span for span in told)
    assert all(span["status"] == {"code": 2, "message": "error"} for span in told)


def test_a_cell_names_its_session(place):
    session = place.call("POST", "/v1/sessions", {"policy": "minimal"}).json
    path = f"/v1/sessions/{session['id']}"
    place.call("POST", f"{path}/contexts/python/run", {"code": "1"},
               headers={"traceparent": f"00-{TRACE}-{PARENT}-01"})
    span, = spans(place, 1)
    assert (span["name"], span["parentSpanId"], attributes(span)["session"]) == ("cell", PARENT, session["id"])
    place.call("DELETE", path)


@pytest.mark.parametrize("words", ["", "00", f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-{'0' * 16}-01", f"ff-{TRACE}-{PARENT}-01",
                                   f"00-{TRACE.upper()}-{PARENT}-01", f"00-{TRACE}-{PARENT}-01-", f"00-{TRACE}_{PARENT}-01"])
def test_what_is_no_trace_context_is_passed_over(place, words):
    status = run(place, traceparent=words)["status"]
    span, = spans(place, 1)
    assert status == "ok" and "parentSpanId" not in span and span["traceId"] != TRACE


def test_what_the_caller_does_not_record_is_not_sent(place):
    run(place, traceparent=f"00-{TRACE}-{PARENT}-00")
    run(place, traceparent=f"00-{TRACE}-{PARENT}-03")
    assert [span["parentSpanId"] for span in spans(place, 1)] == [PARENT]


def metric(place, end):
    found = [line for line in place.call("GET", "/metrics").body.decode().splitlines() if line.startswith("glovebox_trace_spans_total{") and f'"{end}"' in line]
    return float(found[0].rpartition(" ")[2])


def test_a_collector_that_refuses_is_asked_no_more_and_one_that_is_busy_again(place):
    place.collector.answers.put(503)
    run(place)
    first, again = spans(place, 1), spans(place, 1)
    assert first == again, "the same, a second later"
    gave_up = metric(place, "gave_up")
    place.collector.answers.put(400)
    run(place)
    spans(place, 1)
    ends = time.monotonic() + 10
    while metric(place, "gave_up") == gave_up and time.monotonic() < ends:
        time.sleep(0.05)
    assert metric(place, "gave_up") == gave_up + 1 and place.collector.got.empty()


def test_a_url_that_is_none(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("wrong"))
    state_of_its_own(glovebox)
    done = glovebox("serve", "--socket", glovebox.folder / "s", "--otlp-endpoint", "collector:4318")
    assert done.returncode != 0 and b"otlp_endpoint" in done.stderr, done.stderr

"""Programs and terminals of a session over HTTP: started, read, fed, signalled, found again."""

import time

import pytest
from session_rig import Events


@pytest.fixture(scope="module")
def session(daemon):
    made = daemon.session()
    yield made
    made.end()


class Process:
    def __init__(self, session, **request):
        self.session = session
        status, self.answer = session.call("POST", "/processes", request)
        assert status == 201, self.answer
        self.place = f"/processes/{self.answer['id']}"

    def call(self, what, **request):
        return self.session.call("POST", f"{self.place}/{what}", request)

    def events(self, offset=0, headers=()):
        return Stream(self.session.daemon.open("GET", f"{self.session.place}{self.place}/events?offset={offset}",
                                               None, headers))

    def get(self):
        return self.session.call("GET", self.place)[1]

    def ended(self):
        while self.get()["state"] != "ended":
            time.sleep(0.01)
        return self.get()


class Stream(Events):
    """Events with ids."""

    def next(self):
        event = {}
        while True:
            line = self.response.readline().decode()
            assert line, "the stream broke off"
            if line == "\n" and "event" in event:
                return event
            if line != "\n" and not line.startswith(":"):
                key, _, value = line.rstrip("\n").partition(": ")
                event[key] = value

    def all(self, wanted="end"):
        import json  # pylint: disable=import-outside-toplevel
        seen = []
        while not seen or seen[-1]["event"] != wanted:
            seen.append(self.next())
            seen[-1]["data"] = json.loads(seen[-1]["data"])
        return seen

    def text(self, words):
        text = ""
        while words not in text:
            import json  # pylint: disable=import-outside-toplevel
            event = self.next()
            assert event["event"] in ("started", "stdout", "stderr"), event
            text += json.loads(event["data"]).get("data", "")
        return text


def output(events):
    return "".join(event["data"].get("data", "") for event in events if event["event"] in ("stdout", "stderr"))


def test_a_program_prints_and_ends(session):
    process = Process(session, command=["sh", "-c", "echo out; echo err >&2; pwd; exit 3"], cwd="/tmp")
    seen = process.events().all()
    assert [event["event"] for event in seen][0] == "started"
    assert sorted(output(seen).split()) == ["/tmp", "err", "out"]
    assert (seen[-1]["data"]["exit_code"], seen[-1]["data"]["signal"], seen[-1]["data"]["state"]) == (3, None, "ended")


def test_ended_ones_are_kept_within_bounds(daemon):
    """What a program printed is kept for a minute; one who starts many does not fill the daemon with it."""
    session = daemon.session()
    made = []
    for turn in range(60):
        made.append(Process(session, command=["echo", str(turn)]))
        made[-1].ended()
    kept = [process["id"] for process in session.call("GET", "/processes?all=1")[1]["processes"]]
    assert len(kept) == 48 and kept == [process.answer["id"] for process in made[:11:-1]], "the newest"
    assert session.call("GET", made[0].place)[0] == 404
    session.end()


def test_a_stream_begins_with_the_program(session):
    response = session.daemon.open("POST", f"{session.place}/processes", {"shell": "echo $A; cat", "env": {"A": "b"}},
                                   {"Accept": "text/event-stream"})
    assert output(Stream(response).all()) == "b\n", "without stdin it reads nothing"


def test_what_cannot_start_says_why(session):
    for request in ({"command": ["/no/such"]}, {"command": ["true"], "cwd": "/nowhere"}, {"command": []}, {},
                    {"command": ["true"], "unknown": 1}, {"command": ["true"], "env": {"LD_PRELOAD": "x"}}):
        status, answer = session.call("POST", "/processes", request)
        assert status == 400 and answer["error"]["message"], (request, answer)


def test_input_is_fed_and_closed(session):
    process = Process(session, command=["cat"], stdin=True)
    assert process.call("stdin", data="one\n")[0] == 200
    stream = process.events()
    stream.text("one\n")
    assert process.call("stdin", data_base64="/w==", close=True)[0] == 200
    seen = stream.all()
    assert seen[0]["data"] == {"data_base64": "/w=="} and seen[-1]["data"]["exit_code"] == 0
    assert process.call("stdin", data="late")[0] == 409


def test_a_megabyte_of_input(session):
    process = Process(session, command=["wc", "-c"], stdin=True)
    for _ in range(16):
        while process.call("stdin", data="x" * 65536)[0] == 429:
            time.sleep(0.01)
    assert process.call("stdin", close=True)[0] == 200
    assert output(process.events().all()).strip() == "1048576"


def test_a_process_is_found_again_by_offset(session):
    process = Process(session, shell="for i in 1 2 3; do echo $i; sleep 0.1; done", tag="counter")
    first = process.events()
    events = [first.next() for _ in range(2)]
    assert events[1]["event"] == "stdout"
    first.hang_up()
    process.ended()
    again = process.events(headers={"Last-Event-ID": events[1]["id"]}.items())
    assert again.response.status == 200
    assert output(process.events(offset=events[1]["id"]).all()).split() == ["2", "3"]
    assert output(process.events().all()).split() == ["1", "2", "3"]
    assert session.call("GET", "/processes/counter")[1]["id"] == process.answer["id"]
    assert session.call("GET", f"/processes/{process.answer['pid']}")[1]["id"] == process.answer["id"]


def test_unread_output_does_not_block_other_processes(session):
    process = Process(session, command=["sh", "-c", "head -c 30000000 /dev/zero | tr '\\0' x; echo end"])
    ended = process.ended()
    assert ended["exit_code"] == 0 and ended["offset"] > 28000000
    seen = process.events().all()
    lost = [event for event in seen if event["event"] == "lost"]
    assert lost and lost[0]["data"]["bytes"] == ended["offset"]
    assert output(seen).endswith("xend\n") and len(output(seen)) > 900000


def test_a_slow_reader_loses_nothing(session):
    response = session.daemon.open("POST", f"{session.place}/processes",
                                   {"command": ["sh", "-c", "head -c 6000000 /dev/zero | tr '\\0' x"]},
                                   {"Accept": "text/event-stream"})
    time.sleep(0.5)
    seen = Stream(response).all()
    assert len(output(seen)) == 6000000 and not [event for event in seen if event["event"] == "lost"]


def test_signals_and_deadlines(session):
    process = Process(session, shell="sleep 100 & sleep 100; wait")
    assert process.call("signal", signal="SIGTERM", group=True)[0] == 200
    assert process.ended()["signal"] == 15
    assert process.call("signal", signal="TERM")[0] == 409
    assert process.call("signal", signal="NONE")[0] == 400
    late = Process(session, command=["sleep", "100"], timeout_ms=100)
    assert (late.ended()["signal"], late.ended()["timed_out"]) == (9, True)


def test_a_terminal(session):
    process = Process(session, command=["bash", "--norc", "-i"], terminal={"rows": 30, "columns": 90})
    stream = process.events()
    process.call("stdin", data="stty size; tty\n")
    assert "30 90" in stream.text("/dev/pts/")
    process.call("stdin", data="sh -c 'echo sle''eps; exec sleep 100'\n")
    stream.text("sleeps")  # it says so itself: bash has made it the terminal's foreground job, which ^C is for
    process.call("stdin", data="\u0003")
    stream.text("^C")
    assert process.call("resize", rows=10, columns=20)[0] == 200
    process.call("stdin", data="stty size\n")
    stream.text("10 20")
    assert process.call("stdin", close=True)[0] == 400
    process.call("stdin", data="exit 5\n")
    assert stream.all()[-1]["data"]["exit_code"] == 5


def test_what_runs_is_listed_and_ends_with_its_session(daemon):
    session = daemon.session()
    process = Process(session, command=["sleep", "1000"])
    stream = process.events()
    stream.next()
    assert [each["id"] for each in session.call("GET", "/processes")[1]["processes"]] == [process.answer["id"]]
    session.end()
    assert stream.all()[-1]["data"]["signal"] == 9


class TestWaiting:
    """One call, one answer: with ?wait= a program's end and what is kept of its output."""

    def test_a_command_that_waits_for_its_end(self, session):
        status, done = session.call("POST", "/processes?wait=30", {"command": ["sh", "-c", "sleep 0.2; echo out; echo err >&2; exit 3"]})
        assert status == 201 and (done["state"], done["exit_code"]) == ("ended", 3)
        assert (done["stdout"], done["stderr"], done["lost_bytes"]) == ("out\n", "err\n", 0) and done["receipt"]

    def test_one_that_goes_on_is_waited_for_again(self, session):
        status, begun = session.call("POST", "/processes?wait=0", {"shell": "echo first; read -t 1 line < <(sleep 1); echo last"})
        assert status == 201 and begun["state"] == "running" and "stdout" in begun
        status, done = session.call("GET", f"/processes/{begun['id']}?wait=30")
        assert status == 200 and (done["state"], done["stdout"]) == ("ended", "first\nlast\n")
        assert "stdout" not in session.call("GET", f"/processes/{begun['id']}")[1], "without ?wait= it is as it was"

    def test_much_output_holds_nothing_up(self, session):
        done = session.call("POST", "/processes?wait=60", {"command": ["python3", "-c", "print('x' * 99, end='\\n' * 1) or "
                                                                       "[print('y' * 99) for _ in range(80000)]"]})[1]
        assert done["state"] == "ended" and done["lost_bytes"] > 6_000_000 and 900_000 < len(done["stdout"]) <= 1 << 20

    def test_characters_that_are_cut_and_bytes_that_are_none(self, session):
        done = session.call("POST", "/processes?wait=30", {"command": ["python3", "-c", "import os, time; os.write(1, b'\\xe2\\x82'); "
                                                                       "time.sleep(.2); os.write(1, b'\\xac \\xff')"]})[1]
        assert done["stdout"] == "\u20ac \ufffd"

    def test_what_is_no_number_of_seconds(self, session):
        before = len(session.call("GET", "/processes?all=1")[1]["processes"])
        for words in ("-1", "x", "301", ""):
            assert session.call("POST", f"/processes?wait={words}", {"command": ["true"]})[0] == 400, words
        assert len(session.call("GET", "/processes?all=1")[1]["processes"]) == before, "nothing was started"

    def test_a_program_that_cannot_be_started(self, session):
        assert session.call("POST", "/processes?wait=30", {"command": ["no-such-program"]})[0] == 422 or \
            session.call("POST", "/processes?wait=30", {"command": ["no-such-program"]})[0] >= 400
